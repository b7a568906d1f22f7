import type { WatchOptions } from './watch.ts'

/** Starts watching once, on request. If it fails, the daemon goes on without it. */
export class PluginWatch implements AsyncDisposable {
  readonly #enabled: boolean
  readonly #options: WatchOptions
  #watching: Promise<Disposable | undefined> | undefined

  constructor(enabled: boolean, options: WatchOptions) {
    this.#enabled = enabled
    this.#options = options
  }
  async start(): Promise<void> {
    if (!this.#enabled) return
    await (this.#watching ??= this.#watch())
  }
  async #watch(): Promise<Disposable | undefined> {
    try {
      return await (await import('./watch.ts')).watchPlugins(this.#options)
    } catch (error) {
      this.#options.log.warn('plugins are not watched for changes', error)
      return undefined
    }
  }
  async [Symbol.asyncDispose](): Promise<void> {
    const watching = this.#watching ?? Promise.resolve(undefined)
    // Only the first start has an effect.
    this.#watching = Promise.resolve(undefined)
    ;(await watching)?.[Symbol.dispose]()
  }
}
