import { Configuration, DatabaseSnapshots } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Agents, AgentSpawning } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { ChannelAccounts } from '../channels/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { KeyValue } from '../kv/contract.ts'
import { Memories } from '../memory/contract.ts'
import { ProviderKeys } from '../providers/contract.ts'
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
    kv: KeyValue,
    memories: Memories,
    providerKeys: ProviderKeys,
    skills: Skills,
    triggers: TriggerImports,
    workflows: WorkflowImports,
    workspaces: Workspaces,
  },
  hooks: [MigrationEnded],
  migrations,
  pages: [
    {
      path: 'migrate',
      title: 'Move in',
      group: 'Operations',
      file: 'pages/migrate.html',
      assets: ['migrate.css', 'migrate.js'],
    },
  ],
  setup({ config, db, hooks, log, metrics, optional, routes, services }) {
    const items = metrics.counter('svc_migrate_items_total', 'Things of other systems, by kind and what came of them.')
    const open = async (): Promise<Migrations> => {
      const [{ Migrations }, { removeLeftovers }] = await Promise.all([
        import('./service.ts'),
        import('./source/database.ts'),
      ])
      await removeLeftovers(services.snapshots.dataDir)
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
    hooks.on(AgentSpawning, async (spawning) => {
      if (!opened) return spawning
      return { ...spawning, statements: [...spawning.statements, ...(await opened).statementsOf(spawning.agent)] }
    })
    return {}
  },
})
