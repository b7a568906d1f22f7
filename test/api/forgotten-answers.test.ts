import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import type { Json } from '../support/json.ts'

let host: TestHost
beforeAll(async () => {
  host = await startHost({ memory: true })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
})

interface Deletable {
  readonly what: string
  readonly path: (agent: string) => string
  readonly body: (agent: string) => unknown
  /** Where it is deleted. */
  readonly at: (made: Json, agent: string) => string
}
const rows: readonly Deletable[] = [
  {
    what: 'a goal',
    path: () => '/api/goals',
    body: () => ({ title: 'aubergine' }),
    at: ({ id }) => `/api/goals/${id}`,
  },
  {
    what: 'a schedule',
    path: () => '/api/schedules',
    body: (agent) => ({ name: 'aubergine', agent_id: agent, cron: '0 0 1 1 *', message: 'aubergine' }),
    at: ({ id }) => `/api/schedules/${id}`,
  },
  {
    what: 'a task',
    path: () => '/api/tasks',
    body: () => ({ title: 'aubergine', description: 'aubergine' }),
    at: ({ id, task_id: taskId }) => `/api/tasks/${id ?? taskId}`,
  },
  {
    what: 'a webhook',
    path: () => '/api/webhooks',
    body: () => ({ name: 'aubergine', url: 'https://aubergine.example/', events: ['all'] }),
    at: ({ id }) => `/api/webhooks/${id}`,
  },
  {
    what: 'a memory',
    path: () => '/api/memory',
    body: (agent) => ({ content: 'aubergine', agent_id: agent }),
    at: ({ memories }) => `/api/memory/items/${memories[0].id}`,
  },
]

it.each(rows)(
  'a repeated Idempotency-Key brings back nothing of $what that was deleted',
  async ({ what, path, body, at }) => {
    const manifest_toml = `name = "${what.replaceAll(' ', '-')}"`
    const agent: string = (await host.json('POST', '/api/agents', { manifest_toml })).body.agent_id
    const send = () => host.json('POST', path(agent), body(agent), { 'idempotency-key': what.replaceAll(' ', '-') })
    const first = await send()
    expect([first.status, JSON.stringify(first.body)]).toEqual([
      expect.any(Number),
      expect.stringContaining('aubergine'),
    ])
    expect(JSON.stringify((await send()).body)).toContain('aubergine')
    const gone = await host.json('DELETE', at(first.body, agent))
    expect([gone.status, gone.body]).toEqual([expect.toBeOneOf([200, 204]), expect.anything()])
    // Of a turn it is still known that it was; what it said is not.
    expect(JSON.stringify((await send()).body)).not.toContain('aubergine')
  },
)
