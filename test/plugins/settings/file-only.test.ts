import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { undecided } from '../../../core/config/file-only.ts'
import { keysOf } from '../../support/config-keys.ts'
import type { ConfigKey } from '../../support/config-keys.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

let host: TestHost
let home: string
let keys: readonly ConfigKey[]
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-file-only-'))
  await writeFile(join(home, 'config.toml'), '# nothing yet\n')
  host = await startHost({ home, config: {} })
  keys = keysOf((await host.json('GET', '/api/config/schema')).body)
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

const set = (key: string, value: unknown) => host.json('POST', '/api/config/set', { key, value })

describe('what only the file sets', () => {
  it('is decided for every key of the core and of every plugin, with a reason', () => {
    expect(keys.length).toBeGreaterThan(200)
    const open = keys.filter(({ node: { file_only: only, reason } }) => typeof only !== 'boolean' || !reason)
    expect(open.map(({ key }) => key)).toEqual([])
    expect(keys.filter(({ node }) => node['reason'] === undecided.reason).map(({ key }) => key)).toEqual([])
  })

  it('is refused over the API for every such key, with the file and the key, and for no other', async () => {
    for (const { key, node } of keys) {
      const { status, body } = await set(key, { no: 'such value' })
      const { message } = body.error
      if (node['file_only'] === true) {
        expect([key, status, message]).toEqual([key, 403, expect.stringContaining(`${key} is set in the file only`)])
        expect(message).toContain('config.toml')
      } else expect([key, status]).toEqual([key, 400])
    }
    expect(await readFile(join(home, 'config.toml'), 'utf8')).toBe('# nothing yet\n')
  })

  it.each([
    /^plugins\.approvals\./,
    /^plugins\.shell\./,
    /^plugins\.disabled$/,
    /^plugins\.chat\.(screening|personal_data|max_iterations|tool_calls_per_turn)$/,
    /^plugins\.delegation\./,
    /^plugins\.security\./,
    /^plugins\.audit\./,
    /^(manifest_signing|pairing|external_auth|webhook_triggers)\./,
    /^http\.(allowed_|trusted_|tls)/,
    /^rate_limit\.failed_auth_per_minute$/,
    /^outbound\.allow$/,
    /^plugins\.catalog\.registry_url$/,
  ])('holds for what weakens a guard: %s', (pattern) => {
    const guards = keys.filter(({ key }) => pattern.test(key))
    expect(guards.length).toBeGreaterThan(0)
    expect(guards.filter(({ node }) => node['file_only'] !== true).map(({ key }) => key)).toEqual([])
  })

  it.each([
    ['a table in which one key is', 'fallback_models', [{ provider: 'openai', base_url: 'https://evil.example' }]],
    ['a key in quotes', 'plugins."approvals".policy', 'never'],
    ['one of many', 'plugins.approvals.agents.mine', 'never'],
    ['one whose value is right', 'plugins.approvals.policy', 'never'],
    ['one that would tighten a guard', 'plugins.approvals.policy', 'always'],
    ['screening', 'plugins.chat.screening', 'off'],
    ['which plugins are left out', 'plugins.disabled', ['approvals']],
  ])('cannot be set inside of something else: %s', async (_, key, value) => {
    expect((await set(key, value)).status).toBe(403)
    expect(await readFile(join(home, 'config.toml'), 'utf8')).toBe('# nothing yet\n')
  })

  it('does not let the key be taken away', async () => {
    const locked = await mkdtemp(join(tmpdir(), 'svc-file-only-'))
    await writeFile(join(locked, 'config.toml'), 'api_key = "a-key-1"\n')
    {
      await using other = await startHost({ home: locked, plugins: ['audit', 'settings'] })
      const bearer = { authorization: 'Bearer a-key-1' }
      const { status, body } = await other.json('POST', '/api/config/set', { key: 'api_key', value: ' ' }, bearer)
      expect([status, body.error.message]).toEqual([403, expect.stringContaining('config.toml')])
    }
    await rm(locked, { recursive: true, force: true })
  })
})
