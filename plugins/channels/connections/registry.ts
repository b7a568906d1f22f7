import type { ChannelAdapter, ChannelDeclaration, ChannelRegistry } from 'svc/channels'

/** The adapters of the plugins that are loaded; their code is imported on first use. */
export class AdapterRegistry implements ChannelRegistry {
  readonly #channels = new Map<
    string,
    { readonly declaration: ChannelDeclaration; adapter?: Promise<ChannelAdapter> }
  >()
  readonly #changed: (name: string) => Promise<void>

  /** `changed` starts or ends the connections of a channel; removing an adapter waits for it. */
  constructor(changed: (name: string) => Promise<void>) {
    this.#changed = changed
  }

  add(declaration: ChannelDeclaration): () => Promise<void> {
    const { name } = declaration
    if (!/^[a-z][a-z\d_]{0,62}$/.test(name)) throw new Error(`channel "${name}": expected a name in lower_snake_case`)
    if (this.#channels.has(name)) throw new Error(`channel "${name}" exists already`)
    const entry = { declaration }
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
  /** Imports the code of an adapter once. Rejects when it fails to load; the next call tries again. */
  async load(name: string): Promise<ChannelAdapter | undefined> {
    const entry = this.#channels.get(name)
    if (!entry) return undefined
    entry.adapter ??= entry.declaration.load().then((module) => module.default)
    entry.adapter.catch(() => {
      delete entry.adapter
    })
    return entry.adapter
  }
}
