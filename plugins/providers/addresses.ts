import * as v from 'valibot'
import { KeptRows } from 'svc/internal'
import type { PluginContext, PluginDatabase, Statement } from 'svc/sdk'
import { AddressStore } from './store.ts'

/** Where they were kept before there was a table; what is in the table counts. */
const PREFIX = 'url:'
type Storage = PluginContext<never, {}, {}>['storage']

/** Base URLs that were set while running, by provider. They outlive a restart. */
export class Addresses {
  readonly #store: AddressStore
  readonly #urls: KeptRows<ReadonlyMap<string, string>>

  /** `tellChanged`: for the batch that changes one. */
  constructor(db: PluginDatabase, storage: Storage, tellChanged: () => readonly Statement[]) {
    this.#store = new AddressStore(db, tellChanged)
    this.#urls = new KeptRows(async () => {
      const [rows, keys] = await Promise.all([this.#store.all(), storage.getKeys(PREFIX.slice(0, -1))])
      const older = await Promise.all(
        keys.map(async (key) => [key.slice(PREFIX.length), v.parse(v.string(), await storage.getItem(key))] as const),
      )
      return new Map([...older, ...rows])
    })
  }

  /** Reads them, also after another daemon changed some. Before the first time there are none. */
  async read(): Promise<void> {
    this.#urls.changed()
    await this.#urls.get()
  }
  get(provider: string): string | undefined {
    return this.#urls.last?.get(provider)
  }
  /** Durable before it settles, in one batch with the statements. */
  async set(provider: string, url: string, entries: readonly Statement[]): Promise<void> {
    await this.#store.set(provider, url, entries)
    await this.read()
  }
}
