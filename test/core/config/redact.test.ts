import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { configJsonSchema } from '../../../core/config/json-schema.ts'
import { listSecrets, redact } from '../../../core/config/redact.ts'
import { secret } from '../../../core/schema/secret.ts'
import { isTree } from '../../../core/config/shape.ts'
import { defineConfig } from '../../../core/sdk.ts'

const config = {
  api_key: 'topsecret',
  database_url: 'postgres://user:pa55word@db/x',
  rate_limit: { tokens_per_minute: 5 },
  providers: { openai: { api_key: 'sk-secret', base_url: 'https://x' } },
  plugins: { telegram: { bot_token: '123:abc', name: 'bot', nested: { password: 'pw', api_key_env: 'X_KEY' } } },
}

describe('printing', () => {
  it('hides what is marked or named like a secret, and passwords in URLs', () => {
    expect(redact(config)).toEqual({
      api_key: '***',
      database_url: 'postgres://***@db/x',
      rate_limit: { tokens_per_minute: 5 },
      providers: { openai: { api_key: '***', base_url: 'https://x' } },
      plugins: { telegram: { bot_token: '***', name: 'bot', nested: { password: '***', api_key_env: 'X_KEY' } } },
    })
  })
  it('lists the secrets for the mask of the log', () => {
    expect(listSecrets(config).sort()).toEqual(['123:abc', 'pa55word', 'pw', 'sk-secret', 'topsecret'])
  })
  it('knows every key of a list', () => {
    const several = { providers: { openai: { api_keys: ['sk-one', 'sk-two'] } } }
    expect(listSecrets(several)).toEqual(['sk-one', 'sk-two'])
    expect(redact(several)).toEqual({ providers: { openai: { api_keys: '***' } } })
  })
  it('knows the secrets of a list of tables', () => {
    const several = {
      external_auth: {
        providers: [
          { id: 'work', client_secret: 'of work' },
          { id: 'home', client_secret: 'of home', issuer_url: 'https://user:pw@home.example' },
        ],
      },
    }
    expect(listSecrets(several)).toEqual(['of work', 'of home', 'pw'])
    expect(JSON.stringify(redact(several))).not.toMatch(/of (work|home)|pw/)
  })
  it('shows that a secret is not set', () => {
    expect(redact({ api_key: '' })).toEqual({ api_key: '' })
  })
})

describe('the JSON Schema', () => {
  const at = (tree: unknown, ...path: string[]): unknown =>
    path.reduce((node, key) => (isTree(node) ? node[key] : undefined), tree)
  it('describes every key of the file and marks secrets', async () => {
    const schema = await configJsonSchema()
    expect(schema['$schema']).toBe('http://json-schema.org/draft-07/schema#')
    expect(at(schema, 'properties', 'api_key')).toMatchObject({ type: 'string', secret: true, writeOnly: true })
    expect(at(schema, 'properties', 'rate_limit', 'properties', 'tokens_per_minute')).toMatchObject({
      type: 'integer',
      minimum: 1,
      default: 6000,
      description: expect.any(String) as string,
    })
    expect(at(schema, 'properties', 'log_level')).toMatchObject({
      enum: ['silent', 'error', 'warn', 'info', 'debug', 'trace'],
      default: 'info',
    })
    expect(schema['required']).toEqual([])
  })
  it('holds the sections of plugins beside the keys of [plugins]', async () => {
    const config = v.object({ greeting: v.optional(v.string(), 'hi'), token: v.optional(secret(v.string())) })
    const schema = await configJsonSchema([{ name: 'hello', config }])
    expect(at(schema, 'properties', 'plugins', 'properties', 'hello', 'properties')).toMatchObject({
      greeting: { type: 'string', default: 'hi' },
      token: { writeOnly: true },
    })
    expect(at(schema, 'properties', 'plugins', 'properties', 'paths')).toMatchObject({ type: 'array' })
  })
})

it('defineConfig returns what it was given', () => {
  const given = { log_level: 'warn', plugins: { hello: { greeting: 'x' } } } as const
  expect(defineConfig(given)).toBe(given)
})
