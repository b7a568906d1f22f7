import { findNearest, messageOf, suggest } from 'svc/internal'
import type { Configuration, Daemon, PluginStatus } from 'svc/internal'
import { isObject, Refusal, reply } from 'svc/sdk'
import type { Logger, Reply } from 'svc/sdk'
import type * as v from 'valibot'
import type { Audit } from '../audit/contract.ts'
import type { Integrations } from '../integrations/contract.ts'
import { integrationExtension, toExtension, toOrigin, toPlugin } from './plugin-view.ts'
import type { ExtensionDetail, Extensions, PluginDetail, Plugins } from './schema.ts'
import type { InstallStore } from './store.ts'
import { upstream } from './upstream.ts'

export interface CatalogDeps {
  /** The plugin that the routes belong to. */
  readonly self: string
  readonly daemon: Daemon
  readonly configuration: Configuration
  readonly audit: Audit
  readonly log: Logger
  readonly store: InstallStore
  /** `undefined` while their plugin is not loaded. */
  readonly integrations: () => Integrations | undefined
}

/** The plugins of the daemon as the API shows them, and the reload of one. */
export class PluginCatalog {
  readonly #deps: CatalogDeps
  constructor(deps: CatalogDeps) {
    this.#deps = deps
  }

  list(): v.InferOutput<typeof Plugins> {
    const plugins = this.#deps.daemon.plugins().map(toPlugin)
    return { plugins, total: plugins.length }
  }

  async read(name: string): Promise<v.InferOutput<typeof PluginDetail>> {
    const { configuration, store } = this.#deps
    const plugin = this.#find(name)
    const { plugins } = configuration.read()
    const section = isObject(plugins) ? plugins[plugin.name] : undefined
    return {
      ...toPlugin(plugin),
      installed: toOrigin(await store.find(plugin.name)),
      ledger: plugin.ledger.map(({ kind, label }) => ({ kind, label })),
      config_section: `plugins.${plugin.name}`,
      config: isObject(section) ? section : {},
    }
  }

  async reload(name: string): Promise<Reply | { readonly status: 'reloaded'; readonly name: string }> {
    const { self, daemon, audit, log } = this.#deps
    this.#find(name)
    await audit.write({ event: 'plugin_changed', details: `plugin "${name}": reload requested` })
    const done = daemon.reload(name).then(() => log.info(`plugin "${name}" reloaded, as the API asked`))
    if (name === self || upstream(daemon.plugins(), self).has(name)) {
      // The host waits for this very answer. When the unload fails later, the status of the plugin has the reason.
      done.catch((error: unknown) => log.warn(`plugin "${name}" was not reloaded`, error))
      return reply(JSON.stringify({ status: 'reloading', name }), { 'content-type': 'application/json' }, 202)
    }
    try {
      await done
    } catch (error) {
      if (error instanceof Refusal) throw error
      const reason = daemon.plugins().find((one) => one.name === name)?.error ?? messageOf(error)
      throw new Refusal('conflict', `plugin "${name}" was not reloaded: ${reason}`, {
        details: { name, reason },
        cause: error,
      })
    }
    return { status: 'reloaded', name }
  }

  /** Plugins that do not ship with svc, and the catalogue of integrations. */
  async extensions(): Promise<v.InferOutput<typeof Extensions>> {
    const installed = new Map((await this.#deps.store.list()).map((entry) => [entry.name, entry]))
    const integrations = (await this.#deps.integrations()?.entries()) ?? []
    const extensions = [
      ...this.#foreign().map((status) => toExtension(status, installed.get(status.name))),
      ...integrations.map(integrationExtension),
    ]
    return { extensions, total: extensions.length }
  }

  /** A plugin, else an integration of this name. Throws `extension_not_found`. */
  async extension(name: string): Promise<v.InferOutput<typeof ExtensionDetail>> {
    const status = this.#foreign().find((one) => one.name === name)
    if (!status) return await this.#integration(name)
    return {
      ...toExtension(status, await this.#deps.store.find(name)),
      required_env: [],
      has_oauth: false,
      setup_instructions: `Its configuration is [plugins.${name}].`,
      health: status.error ?? 'ok',
    }
  }
  async #integration(name: string): Promise<v.InferOutput<typeof ExtensionDetail>> {
    const entry = await this.#deps.integrations()?.entry(name)
    if (!entry) {
      const names = (await this.extensions()).extensions.map((one) => one.name)
      throw new Refusal('extension_not_found', `No extension "${name}"${suggest(findNearest(name, names))}`)
    }
    return {
      ...integrationExtension(entry),
      required_env: [...entry.requiredEnv],
      has_oauth: entry.hasOauth,
      setup_instructions: entry.setupInstructions,
      health: entry.error ?? 'ok',
    }
  }

  /** Whether there is a plugin of this name that does not ship with svc. */
  isForeign(name: string): boolean {
    return this.#foreign().some((one) => one.name === name)
  }
  /** Those that do not ship with svc. */
  #foreign(): readonly PluginStatus[] {
    return this.#deps.daemon.plugins().filter(({ source }) => source !== 'built-in')
  }

  #find(name: string): PluginStatus {
    const plugins = this.#deps.daemon.plugins()
    const plugin = plugins.find((one) => one.name === name)
    if (plugin) return plugin
    const nearest = findNearest(
      name,
      plugins.map((one) => one.name),
    )
    throw new Refusal('plugin_not_found', `No plugin "${name}"${suggest(nearest)}`)
  }
}
