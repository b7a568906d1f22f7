import { findNearest, suggest } from 'svc/internal'
import { defineRoute, isObject, Refusal, reply } from 'svc/sdk'
import type { Configuration, Daemon, PluginStatus } from 'svc/internal'
import type { AnyRoute, Logger } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { PluginDetail, PluginParams, Plugins, Reloaded } from './schema.ts'
import { toPlugin } from './plugin-view.ts'
import { upstream } from './upstream.ts'

export interface ListDeps {
  /** The plugin these routes belong to. */
  readonly self: string
  readonly daemon: Daemon
  readonly configuration: Configuration
  readonly audit: Audit
  readonly log: Logger
}

export function listRoutes(deps: ListDeps): readonly AnyRoute[] {
  return [listRoute(deps.daemon), readRoute(deps), reloadRoute(deps)]
}

/** Throws `plugin_not_found` with the closest name. */
function findPlugin(daemon: Daemon, name: string): PluginStatus {
  const plugins = daemon.plugins()
  const plugin = plugins.find((one) => one.name === name)
  if (plugin) return plugin
  const nearest = findNearest(
    name,
    plugins.map((one) => one.name),
  )
  throw new Refusal('plugin_not_found', `No plugin "${name}"${suggest(nearest)}`)
}

function listRoute(daemon: Daemon): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/plugins',
    summary: 'List the plugins',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: Plugins,
    handle() {
      const plugins = daemon.plugins().map(toPlugin)
      return { plugins, total: plugins.length }
    },
  })
}

function readRoute({ daemon, configuration }: ListDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/plugins/:name',
    summary: 'Read one plugin with everything it registered',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: PluginParams,
    returns: PluginDetail,
    errors: ['plugin_not_found'],
    handle({ params }) {
      const plugin = findPlugin(daemon, params.name)
      const { plugins } = configuration.read()
      const section = isObject(plugins) ? plugins[plugin.name] : undefined
      return {
        ...toPlugin(plugin),
        ledger: plugin.ledger.map(({ kind, label }) => ({ kind, label })),
        config_section: `plugins.${plugin.name}`,
        config: isObject(section) ? section : {},
      }
    },
  })
}

function reloadRoute({ self, daemon, audit, log }: ListDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/plugins/:name/reload',
    summary: 'Reload a plugin from its folder',
    description:
      'Answers `reloaded` when it is done. A plugin that this route itself depends on is reloaded after the answer, ' +
      '202 with `reloading`: its `reloads` and `error` show the outcome.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 50,
    params: PluginParams,
    returns: Reloaded,
    answers: { 202: { description: 'It is reloaded after this answer', json: Reloaded } },
    errors: ['plugin_not_found', 'conflict'],
    async handle({ params: { name } }) {
      findPlugin(daemon, name)
      await audit.write({ event: 'plugin_changed', details: `plugin "${name}": reload requested` })
      const done = daemon.reload(name)
      if (name === self || upstream(daemon.plugins(), self).has(name)) {
        // The host waits for this very answer. When the unload fails later, the status of the plugin has the reason.
        done.catch((error: unknown) => log.warn(`plugin "${name}" was not reloaded`, error))
        return reply(JSON.stringify({ status: 'reloading', name }), { 'content-type': 'application/json' }, 202)
      }
      try {
        await done
      } catch (error) {
        if (error instanceof Refusal) throw error
        const reason =
          daemon.plugins().find((one) => one.name === name)?.error ??
          (error instanceof Error ? error.message : String(error))
        throw new Refusal('conflict', `plugin "${name}" was not reloaded: ${reason}`, {
          details: { name, reason },
          cause: error,
        })
      }
      return { status: 'reloaded' as const, name }
    },
  })
}
