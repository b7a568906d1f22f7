import { Refusal } from 'svc/sdk'
import type { ChannelHost } from './host.ts'

export interface HostLoaderDeps {
  readonly create: () => Promise<ChannelHost>
  /** Whether there is an account, or a message that waits. */
  readonly isUsed: () => Promise<boolean>
}

/** Creates the host with the first account, message or request: a daemon without channels never reads its code. */
export class HostLoader {
  readonly #deps: HostLoaderDeps
  #loading: Promise<ChannelHost> | undefined
  #loaded: ChannelHost | undefined
  #isClosed = false
  constructor(deps: HostLoaderDeps) {
    this.#deps = deps
  }

  /** The host, if it was created. */
  get loaded(): ChannelHost | undefined {
    return this.#loaded
  }
  /** Rejects when its code cannot be read; the next call tries again. */
  load(): Promise<ChannelHost> {
    if (this.#isClosed) throw new Refusal('service_unavailable', 'The channels are being unloaded; try again')
    this.#loading ??= this.#create()
    return this.#loading
  }
  /** The host, if something asked for it before: its creation is waited for. */
  async requested(): Promise<ChannelHost | undefined> {
    return this.#loading
  }
  async loadIfUsed(): Promise<ChannelHost | undefined> {
    if (this.#loading) return this.#loading
    return !this.#isClosed && (await this.#deps.isUsed()) ? this.load() : undefined
  }
  /** Settles when every connection has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    // One that cannot be created has nothing to close.
    const host = await this.#loading?.catch(() => undefined)
    await host?.close()
  }

  async #create(): Promise<ChannelHost> {
    try {
      this.#loaded = await this.#deps.create()
      return this.#loaded
    } catch (error) {
      this.#loading = undefined
      throw error
    }
  }
}
