import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import { createTestDatabase } from '../support/postgres-server.ts'
import type { TestDatabase } from '../support/postgres-server.ts'
import { DatabaseLink } from './cluster/database-link.ts'

const token = 't'.repeat(40)
const headers = { authorization: `Bearer ${token}` }
const cleanup = new AsyncDisposableStack()
let database: TestDatabase
let link: DatabaseLink
let host: TestHost
let agent: string
beforeAll(async () => {
  database = cleanup.use(await createTestDatabase())
  link = cleanup.use(await DatabaseLink.open(database.host))
  const config = {
    database_url: link.through(database.url),
    outbound: { allow: ['127.0.0.1'] },
    webhook_triggers: { enabled: true, token },
  }
  host = cleanup.use(await startHost({ config }))
  const { body } = await host.json<{ id: string }[]>('GET', '/api/agents')
  agent = body[0]?.id ?? ''
})
afterAll(() => cleanup[Symbol.asyncDispose]())

interface Effect {
  readonly path?: (text: string) => Promise<string>
  /** `text` is in no statement but those that write the effect. */
  readonly body: (text: string) => unknown
  /** Where the text is once. */
  readonly table: string
}
const steps = [{ name: 'one', agent_name: 'assistant', prompt: 'Hello.' }]
const workflow = async (): Promise<string> => (await host.json('POST', '/api/workflows', { steps })).body.workflow_id
const url = 'http://127.0.0.1:8099/'
const schedule = (text: string) => ({ agent_id: agent, name: text, schedule: '0 0 1 1 *', prompt: 'hello' })
const task = (text: string) => ({ title: text, description: 'more' })

const effects: Readonly<Record<string, Effect>> = {
  '/api/agents': { body: (text) => ({ manifest_toml: `name = "${text}"` }), table: 'agents_agent' },
  '/api/agents/:id/clone': {
    path: async () => `/api/agents/${agent}/clone`,
    body: (text) => ({ new_name: text }),
    table: 'agents_agent',
  },
  '/api/goals': { body: (text) => ({ title: text }), table: 'goals_goal' },
  '/api/schedules': { body: schedule, table: 'schedules_job' },
  '/api/cron/jobs': { body: schedule, table: 'schedules_job' },
  '/api/tasks': { body: task, table: 'tasks_task' },
  '/api/comms/task': { body: task, table: 'tasks_task' },
  '/api/triggers': {
    body: (text) => ({ agent_id: agent, pattern: { agent_spawned: { name_pattern: text } } }),
    table: 'triggers_trigger',
  },
  '/api/webhooks': { body: (text) => ({ name: text, url, events: ['agent_killed'] }), table: 'webhooks_target' },
  '/api/webhooks/events': {
    body: (text) => ({ event_type: 'agent_killed', url: url + text }),
    table: 'webhooks_target',
  },
  '/api/hooks/wake': { body: (text) => ({ text, mode: 'next_heartbeat' }), table: 'webhooks_wake' },
  '/api/workflows': { body: (text) => ({ name: text, steps }), table: 'workflows_revision' },
  '/api/workflows/:id/run': {
    path: async () => `/api/workflows/${await workflow()}/run`,
    body: (text) => ({ input: text }),
    table: 'workflows_run',
  },
  '/api/workflows/runs/:id/rerun': {
    path: async (text) => {
      const { body } = await host.json('POST', `/api/workflows/${await workflow()}/run`, { input: text })
      return `/api/workflows/runs/${body.run_id}/rerun`
    },
    body: () => ({}),
    table: 'workflows_run WHERE rerun_of IS NOT NULL',
  },
  '/a2a/tasks': {
    body: (text) => ({ agent_id: agent, message: { role: 'user', parts: [{ text }] } }),
    table: 'a2a_task',
  },
}

describe('what the database wrote without a word is there once when the request is repeated under its key', () => {
  for (const [name, { path, body, table }] of Object.entries(effects))
    it(name, async () => {
      const text = `lost-${name.replaceAll(/\W+/g, '-')}`
      const key = { 'idempotency-key': `key-${name}` }
      const to = (await path?.(text)) ?? name
      const send = () => host.json('POST', to, body(text), { ...headers, ...key })
      const lost = link.loseAnswer(text)
      const first = await send()
      expect([200, 201, 202, 503], JSON.stringify(first.body)).toContain(first.status)
      await lost
      const again = await send()
      expect([200, 201, 202], JSON.stringify(again.body)).toContain(again.status)
      expect(await send()).toMatchObject({ status: again.status, body: again.body })
      const rows = await database.query(`SELECT row_to_json(t) FROM (SELECT * FROM ${table}) AS t`)
      expect(rows.split('\n').filter((row) => row.includes(text))).toHaveLength(1)
    })
})
