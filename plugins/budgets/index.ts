import * as v from 'valibot'
import { Broadcast, followChanges } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Spending } from '../usage/contract.ts'
import { BudgetSection, Config } from './config.ts'
import { BudgetExceeded, Budgets, BudgetUnpriced, BudgetWarning } from './contract.ts'
import { BudgetNotifier } from './notifier.ts'
import { listen } from './hooks.ts'
import { migrations } from './migrations.ts'
import { budgetRoutes } from './routes.ts'
import { BudgetService } from './service.ts'
import { BudgetStore } from './store.ts'

const PRUNE_MS = 24 * 3_600_000
/** Longer than any period a notice is about. */
const KEPT_MS = 62 * 24 * 3_600_000

export default definePlugin({
  name: 'budgets',
  version: '1.0.0',
  config: Config,
  sections: { budget: v.optional(BudgetSection, {}) },
  hooks: [BudgetWarning, BudgetExceeded, BudgetUnpriced],
  requires: { agents: Agents, audit: Audit, broadcast: Broadcast, spending: Spending },
  provides: { budgets: Budgets },
  migrations,
  /** `[budget]` with its defaults. */
  offline: { section: async ({ config }) => v.parse(BudgetSection, config['budget'] ?? {}) },
  pages: [
    { path: 'budgets', title: 'Budgets', group: 'Operations', file: 'pages/budgets.html', assets: ['budgets.js'] },
  ],
  setup({ config: { budget, ...works }, db, hooks, jobs, log, metrics, own, routes, run, services }) {
    const { agents, audit, broadcast, spending } = services
    const store = new BudgetStore(db)
    const refusals = metrics.counter('svc_budget_refusals_total', 'Calls of a model that a budget refused.')
    const notifier = new BudgetNotifier({
      store,
      audit,
      hooks,
      log,
      now: Date.now,
      accounts: (agent) => service.accounts(agent),
      background: (work) => {
        run(work).catch((error: unknown) => {
          log.error('a budget could not be checked', error)
        })
      },
    })
    const service: BudgetService = new BudgetService({
      config: { ...budget, ...works },
      store,
      agents,
      spending,
      audit,
      notifier,
      now: Date.now,
      shared: broadcast.isShared,
      follow: (rows) => followChanges({ broadcast, own }, 'budgets.limits', rows),
      refused: () => {
        refusals.add()
      },
    })
    own('budget notices', () => notifier.close())
    listen(hooks, service, agents)
    jobs.every('prune', PRUNE_MS, () => store.forget(new Date(Date.now() - KEPT_MS).toISOString()))
    jobs.every('families', PRUNE_MS, (signal) => service.forgetGone(signal))
    routes.add(...budgetRoutes({ service, agents, spending }))
    return { budgets: service }
  },
})
