import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { toConfig } from '../../support/chat-stage.ts'
import { eventually } from '../../support/eventually.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { letMeet, openTwoDaemons } from '../../support/two-daemons.ts'
import type { TwoDaemons } from '../../support/two-daemons.ts'
import { turnPlugins } from '../plugin-test.ts'

/** What two daemons on one database learn of at the same moment happens once. The fake provider counts. */
const TOKEN = 'a-token-of-more-than-thirty-two-characters'
let stage: TwoDaemons
let database: TestDatabase
let fake: FakeProvider
let one: TestHost
let two: TestHost
let agent: string
beforeAll(async () => {
  fake = await startFakeProvider()
  stage = await openTwoDaemons(({ url }) =>
    startHost({
      plugins: [
        ...turnPlugins,
        'providers/openai-compatible',
        'kv',
        'queue',
        'tasks',
        'result-delivery',
        'schedules',
        'triggers',
        'webhooks',
        'workflows',
      ],
      config: toConfig(fake, {
        database_url: url,
        webhook_triggers: { enabled: true, token: TOKEN, rate_limit_per_minute: 1_000 },
      }),
    }),
  )
  ;({ database, one, two } = stage)
  agent = (await make('/api/agents', { manifest_toml: 'name = "worker"\n[capabilities]\ntools = ["*"]\n' })).agent_id
})
afterAll(async () => {
  await stage?.[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})

async function make(path: string, body: unknown, host = one) {
  const answer = await host.json('POST', path, body)
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}
/** How often the model was asked this. */
const asked = (text: string): number =>
  fake.requests.filter(({ body }) => String(body.messages?.at(-1)?.content).includes(text)).length

it.each(['with the token', 'with the signature only'])(
  'an inbound webhook that comes to both %s is one turn',
  async (how) => {
    const ids = Array.from({ length: 8 }, (_, at) => `${how.replaceAll(' ', '-')}-${at}-end`)
    const send = async (host: TestHost, id: string) => {
      const body = JSON.stringify({ message: id, agent: 'worker' })
      const seconds = Math.floor(Date.now() / 1000)
      const code = createHmac('sha256', TOKEN).update(`${id}.${seconds}.${body}`).digest('base64')
      const request = {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': String(seconds),
          'webhook-signature': `v1,${code}`,
          ...(how === 'with the token' ? { authorization: `Bearer ${TOKEN}` } : {}),
        },
        body,
      }
      const response = await host.fetch('/api/hooks/agent', request)
      return response.status === 200 ? '200' : response.text()
    }
    const statuses = await Promise.all(ids.flatMap((id) => [send(one, id), send(two, id)]))
    expect(new Set(statuses)).toEqual(new Set(['200']))
    expect(ids.map(asked)).toEqual(ids.map(() => 1))
  },
)

it('a slot of a schedule is one turn', async () => {
  const prompt = 'slot-end'
  const at = new Date(Date.now() + 1_500).toISOString()
  await make('/api/schedules', { agent_id: agent, schedule: { kind: 'at', at }, prompt, session_mode: 'new' }, two)
  const { met } = await letMeet(database, 'LOCK TABLE schedules_job IN SHARE MODE')
  await met
  await eventually(() => expect(asked(prompt)).toBe(1))
  await settled()
  expect(asked(prompt)).toBe(1)
  expect(await database.query('SELECT count(*) FROM schedules_slot')).toBe('1')
})

it('an event fires a trigger once', async () => {
  await make('/api/triggers', {
    agent_id: agent,
    pattern: { memory_key_pattern: { key_pattern: 'watched' } },
    prompt_template: 'fired-end',
    cooldown_secs: 0,
    session_mode: 'new',
  })
  const { met } = await letMeet(database, 'LOCK TABLE triggers_cursor IN SHARE MODE')
  expect((await one.json('PUT', `/api/memory/agents/${agent}/kv/watched`, { value: 1 })).status).toBe(200)
  await met
  await eventually(() => expect(asked('fired-end')).toBe(1))
  await settled()
  expect(asked('fired-end')).toBe(1)
})

it('a step of a workflow runs once', async () => {
  const steps = ['first', 'second'].map((name) => ({ name, agent_name: 'worker', prompt: `${name} of {{run_input}}` }))
  const { workflow_id: id } = await make('/api/workflows', { name: 'flow', steps })
  const inputs = Array.from({ length: 6 }, (_, at) => `input-${at}-end`)
  await Promise.all(
    inputs.map((input, at) => make(`/api/workflows/${id}/run?wait=true`, { input }, at % 2 === 0 ? one : two)),
  )
  expect(inputs.map((input) => [asked(`first of ${input}`), asked(`second of ${input}`)])).toEqual(
    inputs.map(() => [1, 1]),
  )
})

it('a task is claimed once', async () => {
  // Sessions of their own, each at the daemon that gets its first message.
  const claimers = await Promise.all(
    [one, two].map(async (host, at) => {
      const manifest_toml = `name = "claimer-${at}"\n[capabilities]\ntools = ["*"]\n`
      return { host, id: (await make('/api/agents', { manifest_toml })).agent_id }
    }),
  )
  const { id } = await make('/api/tasks', { title: 'the task', description: 'do it' })
  const claim = { calls: [{ name: 'task_claim', args: JSON.stringify({ task_id: id }) }] }
  fake.script(claim, claim, { text: 'ended' }, { text: 'ended' })
  const { met } = await letMeet(database, `PERFORM 1 FROM tasks_task WHERE id = '${id}' FOR UPDATE`)
  await Promise.all(claimers.map(({ host, id: by }) => make(`/api/agents/${by}/message`, { message: 'claim' }, host)))
  await met
  const claims = `SELECT count(*) FROM journal_effect WHERE name = 'task_claim' AND state = 'done'
    AND result LIKE '%the task%'`
  expect(await database.query(claims)).toBe('1')
})

/** Until neither has a turn or a job: whoever would have done something again has done it. */
async function settled(): Promise<void> {
  const open = `SELECT (SELECT count(*) FROM journal_turn WHERE state IN ('queued', 'running', 'waiting'))
    + (SELECT count(*) FROM queue_pgboss.job WHERE state IN ('created', 'retry', 'active') AND start_after <= now())`
  await eventually(async () => expect(await database.query(open)).toBe('0'))
}
