import { wallClock } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import type { PluginContext } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { ServerEntry, Settings } from './config.ts'
import { noFeatures } from './connection/features.ts'
import { openSession } from './connection/open.ts'
import { McpServerChanged } from './contract.ts'
import { ServerRegistry } from './servers/server-registry.ts'
import { programOf } from './servers/program.ts'
import { McpStore } from './store.ts'
import { ToolSet } from './tools/registry.ts'

export interface RuntimeDeps extends Pick<
  PluginContext<Settings, {}, {}>,
  'db' | 'fetch' | 'hooks' | 'leaving' | 'log' | 'operator' | 'spawn' | 'tools' | 'vault'
> {
  readonly settings: Settings
  readonly audit: Audit
  readonly daemon: Daemon
  readonly counted: (server: string, outcome: 'ok' | 'error' | 'failed') => void
  readonly restarted: (server: string) => void
}

/** Everything of the plugin that the first server needs. */
export async function createRuntime(deps: RuntimeDeps, entries: readonly ServerEntry[]): Promise<ServerRegistry> {
  const { settings, daemon, spawn, log } = deps
  const features = noFeatures
  const toolSet = new ToolSet({ tools: deps.tools, features, settings, counted: deps.counted })
  const { homeDir } = daemon.config()
  const registry: ServerRegistry = new ServerRegistry({
    ...deps,
    store: new McpStore(deps.db),
    features,
    toolSet,
    serverDeps: {
      clock: wallClock,
      random: Math.random,
      open: (config, write, signal) =>
        openSession(
          {
            settings,
            features,
            spawn,
            version: daemon.build.version,
            // An address of the file may be private; one that came over the API may not.
            fetchOf: ({ origin }) => (origin === 'file' && deps.operator ? deps.operator.fetch : deps.fetch),
            programOf: (server) =>
              programOf(
                { homeDir, credentialsOf: async () => (await registry.secretsFor(server)).credentials },
                server,
              ),
            headersOf: async (server) => (await registry.secretsFor(server)).headers,
          },
          config,
          write,
          signal,
        ),
      onRestart: ({ name }) => deps.restarted(name),
    },
    announce: (changed) => {
      const about =
        typeof changed === 'string'
          ? { name: changed, state: 'removed' as const, tools: 0 }
          : { name: changed.name, state: changed.state, tools: changed.tools.filter(({ usable }) => usable).length }
      deps.hooks.emit(McpServerChanged, about).catch((error: unknown) => log.error('a listener failed', error))
    },
  })
  await registry.begin(entries)
  return registry
}
