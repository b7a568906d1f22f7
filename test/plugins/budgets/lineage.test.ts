import { expect, it } from 'vitest'
import type { Agent } from '../../../plugins/agents/contract.ts'
import { migrations } from '../../../plugins/budgets/migrations.ts'
import { migrations as usageMigrations } from '../../../plugins/usage/migrations.ts'
import { open } from '../../core/storage/engines.ts'
import { openBudgetService } from './budget-service.ts'

const resources = {
  max_llm_tokens_per_hour: 0,
  max_cost_per_hour_usd: 0,
  max_cost_per_day_usd: 0,
  max_cost_per_month_usd: 0,
}
const agent = (id: string, parent?: string) =>
  ({
    id,
    name: id,
    manifestToml: parent === undefined ? '' : `metadata.parent_agent_id = "${parent}"`,
    manifest: { resources, metadata: parent === undefined ? {} : { parent_agent_id: parent } },
  }) as unknown as Agent

it('an agent that makes others and ends them is not followed by what they were once nothing of it counts', async () => {
  const {
    database: { sql },
    database,
  } = await open('sqlite')
  await database.migrate('usage', usageMigrations)
  await database.migrate('budgets', migrations)
  let now = Date.parse('2026-03-31T12:00:00Z')
  const { service, store, spending } = openBudgetService(sql, () => now, [agent('parent'), agent('child', 'parent')])
  const { signal } = new AbortController()
  for (let n = 0; n < 40; n++) await service.agentSpawned(agent(`passing-${n}`, 'child'))
  expect(await store.ancestors()).toHaveLength(81)
  await spending.claim(
    { id: 'c', agentId: 'passing-7', nano: 5, tokens: 1, expiresAt: new Date(now + 60_000).toISOString() },
    { all: {}, agent: {} },
  )
  await service.forgetGone(signal)
  // A call of it is under way still; the other is there.
  expect((await store.ancestors()).map(({ ancestorId, agentId }) => `${agentId} of ${ancestorId}`).toSorted()).toEqual([
    'child of parent',
    'passing-7 of child',
    'passing-7 of parent',
  ])
  expect((await service.accountOf(agent('parent'))).together.heldNano).toBe(5)
  now += 120_000
  await service.forgetGone(signal)
  expect(await store.ancestors()).toEqual([{ ancestorId: 'parent', agentId: 'child' }])
})
