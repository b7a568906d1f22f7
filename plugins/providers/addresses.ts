import * as v from 'valibot'
import type { PluginContext } from 'svc/sdk'

const PREFIX = 'url:'
type Storage = PluginContext<never, {}, {}>['storage']

/** Base URLs that were set while running, by provider. They outlive a restart. */
export class Addresses {
  readonly #storage: Storage
  readonly #urls: Map<string, string>

  static async open(storage: Storage): Promise<Addresses> {
    const keys = await storage.getKeys(PREFIX.slice(0, -1))
    return new Addresses(storage, new Map(await Promise.all(keys.map(async (key) => [key.slice(PREFIX.length), v.parse(v.string(), await storage.getItem(key))] as const))))
  }
  private constructor(storage: Storage, urls: Map<string, string>) {
    this.#storage = storage
    this.#urls = urls
  }

  get(provider: string): string | undefined { return this.#urls.get(provider) }
  /** Durable before it settles. */
  async set(provider: string, url: string): Promise<void> {
    await this.#storage.setItem(`${PREFIX}${provider}`, url)
    this.#urls.set(provider, url)
  }
}
