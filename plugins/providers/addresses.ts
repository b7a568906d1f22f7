import * as v from 'valibot'
import type { PluginContext, PluginDatabase, Statement } from 'svc/sdk'
import { AddressStore } from './store.ts'

/** Where they were kept before there was a table; what is in the table counts. */
const PREFIX = 'url:'
type Storage = PluginContext<never, {}, {}>['storage']

/** Base URLs that were set while running, by provider. They outlive a restart. */
export class Addresses {
  readonly #store: AddressStore
  readonly #urls: Map<string, string>

  static async open(db: PluginDatabase, storage: Storage): Promise<Addresses> {
    const store = new AddressStore(db)
    const [rows, keys] = await Promise.all([store.all(), storage.getKeys(PREFIX.slice(0, -1))])
    const older = await Promise.all(
      keys.map(async (key) => [key.slice(PREFIX.length), v.parse(v.string(), await storage.getItem(key))] as const),
    )
    return new Addresses(store, new Map([...older, ...rows]))
  }
  private constructor(store: AddressStore, urls: Map<string, string>) {
    this.#store = store
    this.#urls = urls
  }

  get(provider: string): string | undefined {
    return this.#urls.get(provider)
  }
  /** Durable before it settles, in one batch with the statements. */
  async set(provider: string, url: string, entries: readonly Statement[]): Promise<void> {
    await this.#store.set(provider, url, entries)
    this.#urls.set(provider, url)
  }
}
