import { join } from 'node:path'
import { wallClock } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { Counter, Hooks, Logger, PluginDatabase } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Cluster } from '../cluster/contract.ts'
import type { McpServers } from '../mcp/contract.ts'
import type { Extensions, Settings } from './config.ts'
import { IntegrationChanged } from './contract.ts'
import type { Integrations } from './contract.ts'
import { HealthMonitor } from './health.ts'
import { IntegrationService } from './service.ts'
import { InstalledStore } from './store.ts'
import { templateEntry, toEntry } from './views.ts'

export interface RuntimeDeps {
  readonly settings: Settings & { readonly extensions: Extensions }
  readonly homeDir: string
  readonly servers: McpServers
  readonly audit: Audit
  readonly cluster: Pick<Cluster, 'self' | 'isAlive' | 'unlessAlive'>
  readonly db: PluginDatabase
  readonly hooks: Pick<Hooks, 'emit'>
  readonly log: Logger
  readonly hasProgram: (name: string) => boolean
  readonly checks: Counter
  readonly reconnects: Counter
  readonly alerts: Counter
  readonly clock?: Clock
  readonly random?: () => number
}
export interface Runtime {
  readonly service: IntegrationService
  readonly monitor: HealthMonitor
  readonly provided: Integrations
}

/** Everything but the wiring, made when the first integration is there or asked for. */
export function createRuntime(deps: RuntimeDeps): Runtime {
  const { settings, homeDir, servers, audit, cluster, db, hooks, log, clock = wallClock, random = Math.random } = deps
  const store = new InstalledStore(db, log)
  const alert = async (id: string, error: string | undefined): Promise<void> => {
    const change = error === undefined ? 'recovered' : 'unhealthy'
    deps.alerts.add(1, { change })
    const details = error === undefined ? `integration "${id}" works again` : `integration "${id}" fails: ${error}`
    log.warn(details)
    await audit.write({ event: 'integration_changed', details })
    const template = (await store.find(id))?.template ?? id
    await hooks.emit(IntegrationChanged, { id, template, change, error: error ?? null })
  }
  const monitor = new HealthMonitor({
    servers,
    settings: { ...settings.extensions, check_timeout_secs: settings.check_timeout_secs },
    clock,
    random,
    log,
    checks: deps.checks,
    reconnects: deps.reconnects,
    alert,
  })
  const service = new IntegrationService({
    store,
    cluster,
    servers,
    monitor,
    audit,
    hooks,
    log,
    clock,
    catalog: {
      folder: join(homeDir, 'integrations'),
      maxFiles: settings.max_templates,
      maxBytes: settings.max_template_bytes,
    },
    addition: { settings, hasProgram: deps.hasProgram, folderOf: (id) => join(homeDir, 'mcp', id) },
  })
  return { service, monitor, provided: providedBy(service) }
}

function providedBy(service: IntegrationService): Integrations {
  return {
    async entries() {
      const added = (await service.list()).map(toEntry)
      const ids = new Set(added.map(({ id }) => id))
      const { templates } = await service.catalog()
      return [...added, ...[...templates.values()].filter(({ id }) => !ids.has(id)).map(templateEntry)]
    },
    async entry(id) {
      const added = await service.find(id)
      if (added) return toEntry(added)
      const template = (await service.catalog()).templates.get(id)
      return template && templateEntry(template)
    },
    add: async (request) => toEntry(await service.add(request)),
    remove: (id) => service.remove(id),
  }
}
