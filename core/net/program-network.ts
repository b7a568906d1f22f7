import type { MetricRegistry } from '../metrics/registry.ts'
import type { Outbound } from './outbound.ts'
import type { Proxy, ProxyMeter, ProxySettings } from './proxy.ts'

/** The proxies of all running programs, and their metrics. */
export class ProgramNetwork {
  readonly #outbound: Outbound
  readonly #settings: () => ProxySettings
  readonly #meter: ProxyMeter
  readonly #open = new Set<Proxy>()

  constructor(outbound: Outbound, settings: () => ProxySettings, metrics: Pick<MetricRegistry, 'core' | 'counted'>) {
    this.#outbound = outbound
    this.#settings = settings
    const outcomes = { allowed: 0, refused: 0, failed: 0, revoked: 0 }
    const bytes = { sent: 0, received: 0 }
    this.#meter = {
      open: 0,
      connection: (outcome) => void outcomes[outcome]++,
      bytes(sent, received) {
        bytes.sent += sent
        bytes.received += received
      },
    }
    metrics.counted('svc_program_connections_total', 'Connections that programs of plugins asked for.', () =>
      Object.entries(outcomes).map(([outcome, value]) => ({ value, labels: { outcome } })),
    )
    metrics.counted('svc_program_bytes_total', 'Bytes of ended connections of programs.', () =>
      Object.entries(bytes).map(([direction, value]) => ({ value, labels: { direction } })),
    )
    metrics.core.observed('svc_program_proxies', 'Proxies of programs that are open.', () => [
      { value: this.#open.size },
    ])
  }

  async open(admits: (url: URL) => void | Promise<void>, onFailure?: (url: URL, why: string) => void): Promise<Proxy> {
    const { openProxy } = await import('./proxy.ts')
    const proxy = await openProxy({
      outbound: this.#outbound,
      admits,
      settings: this.#settings(),
      meter: this.#meter,
      ...(onFailure && { onFailure }),
    })
    this.#open.add(proxy)
    return {
      socket: proxy.socket,
      recheck: () => proxy.recheck(),
      close: () => {
        this.#open.delete(proxy)
        return proxy.close()
      },
    }
  }

  /** Removes what the proxies of killed daemons left in the folder for temporary files. */
  async removeStaleFolders(): Promise<void> {
    const { removeStaleFolders } = await import('./proxy-folders.ts')
    await removeStaleFolders()
  }

  /** Closes connections that changed rules do not permit any more. */
  async recheck(): Promise<void> {
    await Promise.all([...this.#open].map((proxy) => proxy.recheck()))
  }
}
