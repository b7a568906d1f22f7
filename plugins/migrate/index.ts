import { Configuration, DatabaseSnapshots } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Agents, AgentSpawning } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { ChannelAccounts } from '../channels/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { Memories } from '../memory/contract.ts'
import { CronJobs } from '../schedules/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import { Skills } from '../skills/contract.ts'
import { TriggerImports } from '../triggers/contract.ts'
import { WorkflowImports } from '../workflows/contract.ts'
import { Settings } from './config.ts'
import { MigrationEnded } from './contract.ts'
import { migrations } from './migrations.ts'
import { migrateRoutes } from './routes.ts'
import type { Migrations } from './service.ts'

export default definePlugin({
  name: 'migrate',
  version: '1.0.0',
  config: Settings,
  requires: {
    agents: Agents,
    audit: Audit,
    configuration: Configuration,
    sessions: Sessions,
    snapshots: DatabaseSnapshots,
  },
  optional: {
    channels: ChannelAccounts,
    cronJobs: CronJobs,
    memories: Memories,
    skills: Skills,
    triggers: TriggerImports,
    workflows: WorkflowImports,
    workspaces: Workspaces,
  },
  hooks: [MigrationEnded],
  migrations,
  pages: [{ path: 'migrate', title: 'Move in', file: 'pages/migrate.html', assets: ['migrate.css', 'migrate.js'] }],
  setup({ config, db, hooks, log, metrics, optional, routes, services }) {
    const items = metrics.counter('svc_migrate_items_total', 'Things of other systems, by kind and what came of them.')
    const open = async (): Promise<Migrations> => {
      const { Migrations } = await import('./service.ts')
      return new Migrations({
        ...services,
        db,
        hooks,
        log,
        settings: config,
        items,
        optional,
      })
    }
    let opened: Promise<Migrations> | undefined
    routes.add(...migrateRoutes(() => (opened ??= open())))
    hooks.on(AgentSpawning, async ({ agent, statements }) => {
      if (!opened) return { agent, statements }
      return { agent, statements: [...statements, ...(await opened).statementsOf(agent)] }
    })
    return {}
  },
})
