import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

let host: TestHost
let agent: string
beforeAll(async () => {
  host = await startHost({ plugins: ['audit', 'agents', 'approvals'] })
  agent = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "target"' })).body.agent_id
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

const values = [
  'null',
  'true',
  '7',
  '1e400',
  '-1',
  '0.5',
  '""',
  '[]',
  '[[[[1]]]]',
  '{}',
  '"a\\u0000b"',
  '"\\ud800"',
  JSON.stringify('x'.repeat(70_000)),
  '"\'; DROP TABLE approvals_request; --"',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  `${'['.repeat(500)}${']'.repeat(500)}`,
  `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`,
  '{"a":"\\u202e\\u0000\\ud800"}',
]
const fields = [
  'agent_id',
  'action',
  'tool_name',
  'description',
  'action_summary',
  'payload',
  'session_id',
  'timeout_secs',
  'unknown',
] as const

it.each(fields)('nothing in %s is a defect, a refusal names it, and leaves nothing behind', async (field) => {
  for (const value of values) {
    const others = { agent_id: JSON.stringify(agent), action: '"a"', [field]: value }
    const body = `{${Object.entries(others)
      .map(([key, json]) => `${JSON.stringify(key)}:${json}`)
      .join(',')}}`
    const response = await host.fetch('/api/approvals', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const text = await response.text()
    expect([value.slice(0, 40), response.status < 500]).toEqual([value.slice(0, 40), true])
    const { approvals } = (await host.json('GET', '/api/approvals?status=pending')).body
    if (response.status === 201) {
      expect(approvals).toHaveLength(1)
      expect((await host.json('POST', `/api/approvals/${approvals[0].id}/approve`)).status).toBe(200)
    } else {
      expect(approvals).toEqual([])
      if (!/nested|JSON/.test(text))
        expect([value.slice(0, 40), text]).toEqual([value.slice(0, 40), expect.stringContaining(field)])
    }
  }
  expect('polluted' in {}).toBe(false)
  expect((await host.json('GET', '/api/audit/verify')).body.status).toBe('valid')
})

it.each(['%00', '%2e%2e', '%ff', 'a'.repeat(5000), '%27%20OR%201=1', '__proto__'])(
  '%s in the place of an id is a 4xx',
  async (hostile) => {
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/approve'],
      ['POST', '/reject'],
    ] as const) {
      const { status } = await host.fetch(`/api/approvals/${hostile}${path}`, { method })
      expect(status).toBeGreaterThanOrEqual(400)
      expect(status).toBeLessThan(500)
    }
  },
)

it.each(['limit=-1', 'limit=501', 'limit=x', 'limit=', 'status=done', 'agent_id=x', 'limit=1&limit=2'])(
  '?%s is refused, or means what it says',
  async (query) => {
    expect((await host.fetch(`/api/approvals?${query}`)).status).toBeLessThan(500)
  },
)
