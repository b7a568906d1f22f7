import * as v from 'valibot'
import type { PluginDatabase } from '../../../core/storage/database.ts'
import type { Agent } from '../../../plugins/agents/contract.ts'
import { BudgetConfig } from '../../../plugins/budgets/config.ts'
import { BudgetNotifier } from '../../../plugins/budgets/notifier.ts'
import { BudgetService } from '../../../plugins/budgets/service.ts'
import { BudgetStore } from '../../../plugins/budgets/store.ts'
import { createSpending } from '../../../plugins/usage/spending.ts'
import { UsageStore } from '../../../plugins/usage/store.ts'

/** What the services of several processes tell each other. */
export type Followers = Set<() => void>

/** The service of one process over a database, with what it stands on. `followers`: of all processes, if there are. */
export function openBudgetService(
  sql: PluginDatabase,
  now: () => number,
  agents: readonly Agent[],
  followers?: Followers,
) {
  const store = new BudgetStore(sql)
  const spending = createSpending(sql, new UsageStore(sql), now)
  const audit = {
    entry: () => sql.sql`SELECT 1`,
    write: async () => undefined,
    entries: async () => [],
    following: async () => [],
    newest: async () => 0,
  }
  const notifier: BudgetNotifier = new BudgetNotifier({
    store,
    audit,
    hooks: {
      on: () => undefined,
      emit: async () => undefined,
      check: async () => undefined,
      apply: async (_, value) => value,
    },
    log: { warn: Object.assign(() => undefined, { raw: () => undefined }) },
    now,
    accounts: async () => [],
    background: (work) => {
      void work()
    },
  })
  const service = new BudgetService({
    config: v.parse(BudgetConfig, {}),
    store,
    agents: { find: async (id) => agents.find((one) => one.id === id), list: async () => agents },
    spending,
    audit,
    notifier,
    now,
    shared: followers !== undefined,
    follow(rows) {
      if (typeof rows === 'function') followers?.add(rows)
      const tellOthers = (): void => {
        for (const other of followers ?? []) if (other !== rows) other()
      }
      return () => (followers ? [{ ...sql.sql`SELECT 1`, written: tellOthers }] : [])
    },
    refused: () => undefined,
  })
  return { service, store, spending }
}
