import { expect, it } from 'vitest'
import type { Agent } from '../../../plugins/agents/contract.ts'
import { migrations } from '../../../plugins/budgets/migrations.ts'
import type { ModelCallAttempt } from '../../../plugins/chat/contract.ts'
import { migrations as usageMigrations } from '../../../plugins/usage/migrations.ts'
import { open } from '../../core/storage/engines.ts'
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
