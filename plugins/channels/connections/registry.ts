import { Refusal } from 'svc/sdk'
import type { ChannelAdapter, ChannelDeclaration, ChannelNetwork, ChannelRegistry } from 'svc/channels'

interface Entry {
  readonly declaration: ChannelDeclaration
  readonly network: ChannelNetwork
  loading?: Promise<ChannelAdapter>
  loaded?: ChannelAdapter
}

/** The adapters of the plugins that are loaded; their code is imported on first use. */
export class AdapterRegistry implements ChannelRegistry {
  readonly #channels = new Map<string, Entry>()
  readonly #changed: (name: string) => Promise<void>

  /** `changed` starts or ends the connections of a channel; removing an adapter waits for it. */
  constructor(changed: (name: string) => Promise<void>) {
    this.#changed = changed
  }

  add(declaration: ChannelDeclaration, network: ChannelNetwork): () => Promise<void> {
    const { name } = declaration
    if (!/^[a-z][a-z\d_]{0,62}$/.test(name)) throw new Error(`channel "${name}": expected a name in lower_snake_case`)
    if (this.#channels.has(name)) throw new Error(`channel "${name}" exists already`)
    const entry: Entry = { declaration, network }
    this.#channels.set(name, entry)
    void this.#changed(name)
    return async () => {
      if (this.#channels.get(name) !== entry) return
      this.#channels.delete(name)
      await this.#changed(name)
    }
  }

  find(name: string): ChannelDeclaration | undefined {
    return this.#channels.get(name)?.declaration
  }
  list(): readonly ChannelDeclaration[] {
    return [...this.#channels.values()].map(({ declaration }) => declaration)
  }
  /** The network of the plugin that added a channel. */
  network(name: string): ChannelNetwork | undefined {
    return this.#channels.get(name)?.network
  }
  /** The adapter if its code was imported already. */
  loaded(name: string): ChannelAdapter | undefined {
    return this.#channels.get(name)?.loaded
  }
  /** Counts a call of an adapter, and its failure, as one of the plugin that added it. */
  countCall(name: string, failure?: { readonly error: unknown }): void {
    const counted = this.#channels.get(name)?.network.run?.(() => {
      if (failure) throw failure.error
    })
    counted?.catch(() => undefined /* who called the adapter deals with its error */)
  }
  /** As `load`; `undefined` while no plugin has the channel. */
  async loadIfAdded(name: string): Promise<ChannelAdapter | undefined> {
    return this.#channels.has(name) ? this.load(name) : undefined
  }
  /** Imports the code of an adapter once. Rejects when it fails to load; the next call tries again. */
  async load(name: string): Promise<ChannelAdapter> {
    const entry = this.#channels.get(name)
    if (!entry) throw new Refusal('conflict', `There is no adapter for ${name}`)
    entry.loading ??= entry.declaration.load().then((module) => (entry.loaded = module.default))
    entry.loading.catch(() => {
      delete entry.loading
    })
    return entry.loading
  }
}
