import { findNearest, suggest } from 'svc/internal'
import { defineRoute, Refusal, reply } from 'svc/sdk'
import type { Daemon, PluginStatus } from 'svc/internal'
import type { AnyRoute } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { PluginDetail, PluginParams, Plugins, Reloaded } from './schema.ts'
import type { Plugin } from './schema.ts'
import { upstream } from './upstream.ts'

/** `self` is the plugin these routes belong to. */
export function pluginRoutes(self: string, daemon: Daemon, audit: Audit, log: Logger): readonly AnyRoute[] {
  const find = (name: string): PluginStatus => {
    const plugins = daemon.plugins()
    const plugin = plugins.find((one) => one.name === name)
    if (plugin) return plugin
    const nearest = findNearest(
      name,
      plugins.map((one) => one.name),
    )
    throw new Refusal('plugin_not_found', `No plugin "${name}"${suggest(nearest)}`)
  }

  return [listRoute(daemon), readRoute(find), reloadRoute(self, daemon, audit, log, find)]
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

function readRoute(find: (name: string) => PluginStatus): AnyRoute {
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
      const plugin = find(params.name)
      return { ...toPlugin(plugin), ledger: plugin.ledger.map(({ kind, label }) => ({ kind, label })) }
    },
  })
}

function reloadRoute(
  self: string,
  daemon: Daemon,
  audit: Audit,
  log: Logger,
  find: (name: string) => PluginStatus,
): AnyRoute {
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
      find(name)
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

function toPlugin({ name, version, state, source, requires, provides, ledger, reloads, error }: PluginStatus): Plugin {
  return {
    name,
    display_name: name
      .split('-')
      .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
      .join(' '),
    version,
    state,
    source,
    enabled: state !== 'disabled',
    requires: [...requires],
    provides: [...provides],
    ledger_size: ledger.length,
    reloads,
    error: error ?? null,
  }
}
