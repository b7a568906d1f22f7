import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

let host: TestHost
let agent: string
beforeAll(async () => {
  host = await startHost({ plugins: ['audit', 'agents', 'kv', 'files', 'system'] })
  agent = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "target"' })).body.agent_id
})
afterAll(async () => { await host[Symbol.asyncDispose]() })

const values: readonly (readonly [name: string, json: string])[] = [
  ['null', 'null'], ['true', 'true'], ['a number', '7'], ['a huge number', '1e400'], ['a negative number', '-1'], ['a fraction', '0.5'], ['an empty text', '""'],
  ['a list', '[]'], ['a list of lists', '[[[[1]]]]'], ['an object', '{}'], ['NUL', '"a\\u0000b"'], ['half a surrogate pair', '"\\ud800"'], ['a long text', JSON.stringify('x'.repeat(70_000))],
  ['a path', '"../../../etc/passwd"'], ['SQL', '"\'; DROP TABLE agents_agent; --"'], ['__proto__', '{"__proto__":{"polluted":true}}'], ['deep nesting', `${'['.repeat(500)}${']'.repeat(500)}`],
]
const fields: readonly (readonly [method: string, path: string, field: string])[] = [
  ['POST', '/api/agents', 'manifest_toml'], ['POST', '/api/agents', 'template'], ['POST', '/api/agents', 'name'],
  ...['name', 'description', 'system_prompt', 'provider', 'model', 'tags', 'temperature', 'max_tokens', 'manifest_toml'].map((field) => ['PATCH', '/api/agents/:agent', field] as const),
  ['PUT', '/api/agents/:agent/model', 'model'], ['PUT', '/api/agents/:agent/model', 'provider'],
  ...['name', 'avatar', 'persona', 'emoji', 'avatar_url', 'color', 'archetype', 'vibe', 'greeting_style'].map((field) => ['PATCH', '/api/agents/:agent/identity', field] as const),
  ...['name', 'description', 'system_prompt', 'avatar', 'model', 'provider', 'api_key_env', 'base_url', 'fallback_models', 'max_tokens', 'temperature', 'web_search_augmentation'].map((field) => ['PATCH', '/api/agents/:agent/config', field] as const),
  ['PUT', '/api/agents/:agent/mode', 'mode'],
  ...['tools', 'capabilities_tools', 'tool_allowlist', 'tool_blocklist', 'disabled'].map((field) => ['PUT', '/api/agents/:agent/tools', field] as const),
  ['PUT', '/api/agents/:agent/skills', 'skills'], ['PUT', '/api/agents/:agent/skills', 'mode'], ['PUT', '/api/agents/:agent/mcp_servers', 'mcp_servers'],
  ['POST', '/api/agents/bulk', 'agents'], ['DELETE', '/api/agents/bulk', 'agent_ids'], ['POST', '/api/agents/bulk/start', 'agent_ids'], ['POST', '/api/agents/bulk/stop', 'agent_ids'],
  ...['new_name', 'include_tools', 'include_skills'].map((field) => ['POST', '/api/agents/:agent/clone', field] as const),
  ['PUT', '/api/agents/:agent/files/hostile.txt', 'content'], ['PUT', '/api/agents/:agent/files/hostile.txt', 'encoding'],
  ['POST', '/api/agents/:agent/memory/import', 'kv'], ['POST', '/api/agents/:agent/memory/import', 'clear_existing'], ['POST', '/api/memory/agents/:agent/import', 'version'],
  ['PUT', '/api/agents/:agent/update', 'tags'], ['PUT', '/api/memory/agents/:agent/kv/hostile', 'value'],
]

it.each(fields)('%s %s: nothing in %s is a defect, and a refusal changes nothing', async (method, path, field) => {
  const target = path.replace(':agent', agent)
  for (const [name, value] of values) {
    const before = await (await host.fetch('/api/agents')).text()
    const response = await host.fetch(target, { method, headers: { 'content-type': 'application/json' }, body: `{${JSON.stringify(field)}:${value}}` })
    const text = await response.text()
    expect([name, response.status < 500]).toEqual([name, true])
    expect(JSON.parse(text)).toBeTypeOf('object')
    if (response.status < 400) continue
    expect(await (await host.fetch('/api/agents')).text()).toBe(before)
  }
  expect((await host.fetch(`/api/agents/${agent}`)).status).toBe(200)
  expect('polluted' in {}).toBe(false)
})

it.each(['%00', '%2e%2e', '..%2f..%2fetc', '%ff', 'a'.repeat(5000), '%27%20OR%201=1', '__proto__', '%F0%9F%A6%8A'])('%s in the place of an id or a name is a 4xx', async (hostile) => {
  for (const [method, path] of [['GET', '/api/agents/'], ['DELETE', '/api/agents/'], ['GET', '/api/tools/'], ['GET', '/api/plugins/'], ['POST', '/api/plugins/x/../']] as const) {
    const { status } = await host.fetch(`${path}${hostile}`, { method })
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
  }
})
