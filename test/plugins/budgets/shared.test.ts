import { describe, expect, it } from 'vitest'
import type { Agent } from '../../../plugins/agents/contract.ts'
import { migrations } from '../../../plugins/budgets/migrations.ts'
import type { ModelCallAttempt } from '../../../plugins/chat/contract.ts'
import { migrations as usageMigrations } from '../../../plugins/usage/migrations.ts'
import { engines, open } from '../../core/storage/engines.ts'
import { openBudgetService } from './budget-service.ts'
import type { Followers } from './budget-service.ts'

it('two processes on one database share what is left, and know what one of them sets', async () => {
  const {
    database: { sql },
    database,
  } = await open('postgresql')
  await database.migrate('usage', usageMigrations)
  await database.migrate('budgets', migrations)
  const now = Date.parse('2026-03-31T12:00:00Z')
  const followers: Followers = new Set()
  const [{ service: one }, { service: other }] = [
    openBudgetService(sql, () => now, [], followers),
    openBudgetService(sql, () => now, [], followers),
  ]
  const agent = {
    id: 'a',
    name: 'a',
    manifest: {
      resources: {
        max_llm_tokens_per_hour: 0,
        max_cost_per_hour_usd: 0,
        max_cost_per_day_usd: 0,
        max_cost_per_month_usd: 0,
      },
      metadata: {},
    },
  } as unknown as Agent
  const attempt = {
    agent,
    turnId: 't',
    sessionId: 's',
    model: { provider: 'p', model: 'm', price: { input: 1000, output: 1000 }, contextWindow: 1000 },
    maxTokens: { input: 5, output: 5 },
    onRelease: () => undefined,
  } satisfies ModelCallAttempt
  await other.admit(attempt)
  await one.set(undefined, { dayUsd: 0.065 }, 'a limit')
  // What the other set before stays, although this one has not named it.
  await other.set(undefined, { monthUsd: 5 }, 'another limit')
  const taken = await Promise.allSettled([
    ...Array.from({ length: 5 }, () => one.admit(attempt)),
    ...Array.from({ length: 5 }, () => other.admit(attempt)),
  ])
  // The call that was made before there was a limit set nothing aside.
  expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(6)
  expect(taken.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { code: 'rate_limit', message: expect.stringContaining('daily budget of all agents') },
  })
})

const resources = { max_llm_tokens_per_hour: 0, max_cost_per_hour_usd: 0, max_cost_per_day_usd: 0 }
const member = (id: string, parent?: string) =>
  ({
    id,
    name: id,
    manifestToml: parent === undefined ? '' : `metadata.parent_agent_id = "${parent}"`,
    manifest: {
      resources: { ...resources, max_cost_per_month_usd: parent === undefined ? 0.065 : 0 },
      metadata: parent === undefined ? {} : { parent_agent_id: parent },
    },
  }) as unknown as Agent
/** A call that may cost a cent. */
const call = (agent: Agent) =>
  ({
    agent,
    turnId: 't',
    sessionId: 's',
    model: { provider: 'p', model: 'm', price: { input: 1000, output: 1000 }, contextWindow: 1000 },
    maxTokens: { input: 5, output: 5 },
    onRelease: () => undefined,
  }) satisfies ModelCallAttempt
const parent = member('parent')
const children = Array.from({ length: 4 }, (_, at) => member(`child-${at}`, 'parent'))

describe.each(engines)('a family on %s', (engine) => {
  it('keeps the limit of who made it, with calls of all its members at two daemons at the same moment', async () => {
    const { database } = await open(engine)
    await database.migrate('usage', usageMigrations)
    await database.migrate('budgets', migrations)
    const now = Date.parse('2026-03-31T12:00:00Z')
    const followers: Followers | undefined = engine === 'sqlite' ? undefined : new Set()
    const agents = [parent, ...children]
    const [one, other] = [0, 1].map(() => openBudgetService(database.sql, () => now, agents, followers).service)
    const taken = await Promise.allSettled(
      Array.from({ length: 20 }, (_, at) => (at % 2 ? one : other)?.admit(call(agents[at % 5] ?? parent))),
    )
    expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(6)
    expect(taken.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'rate_limit', message: expect.stringContaining('monthly budget of agent "parent"') },
    })
  })
})

it('a family counts a member that another daemon made a moment ago', async () => {
  const { database } = await open('postgresql')
  await database.migrate('usage', usageMigrations)
  await database.migrate('budgets', migrations)
  const now = Date.parse('2026-03-31T12:00:00Z')
  // Nothing that one says is heard by the other.
  const agents = [parent]
  const { service: one } = openBudgetService(database.sql, () => now, agents, new Set())
  const { service: other } = openBudgetService(database.sql, () => now, agents, new Set())
  await one.admit(call(parent))
  await other.admit(call(parent))
  const child = member('child', 'parent')
  agents.push(child)
  await other.agentSpawned(child)
  for (let at = 0; at < 3; at++) await other.admit(call(child))
  // Of six there is room for one more: at this daemon the child is not known yet.
  await one.admit(call(parent))
  await expect(one.admit(call(parent))).rejects.toMatchObject({ code: 'rate_limit' })
  await expect(one.admit(call(child))).rejects.toMatchObject({ code: 'rate_limit' })
})
