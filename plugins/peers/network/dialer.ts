import { messageOf, monotonicClock, sleep } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { LinkReplaced } from '../links/link.ts'
import type { PeerLink } from '../links/link.ts'

export interface DialerDeps {
  /** Connects and serves until the link ends. `opened` is called when it is open. */
  readonly dial: (target: Target, opened: (link: PeerLink) => void) => Promise<Error>
  /** Whether no other daemon on the database dials it. Absent where no other one can be. */
  readonly mayDial?: ((target: Target) => Promise<boolean>) | undefined
  readonly minMs: number
  readonly maxMs: number
  readonly random: () => number
  readonly clock?: Clock
}
/** An entry of `network.peers`. */
export interface Target {
  readonly host: string
  readonly port: number
  /** The node that must answer there; `undefined` for any that knows the secret. */
  readonly nodeId: string | undefined
  readonly address: string
  /** It knows only the handshake of two messages. */
  readonly isCompatible: boolean
}
/** The node is linked, by a link that somebody else made. */
export class AlreadyLinked extends Error {
  override readonly name = 'AlreadyLinked'
  readonly link: PeerLink
  constructor(link: PeerLink) {
    super('the node is linked')
    this.link = link
  }
}

/** Keeps one node of the configuration linked. */
export class Dialer {
  readonly target: Target
  state: 'connecting' | 'connected' | 'waiting' = 'connecting'
  /** Why it is not connected. */
  problem: string | undefined
  /** Wall clock in milliseconds. */
  nextAttemptAt: number | undefined
  readonly #deps: DialerDeps
  readonly #clock: Clock
  #failures = 0
  #hurry = new AbortController()

  constructor(target: Target, deps: DialerDeps) {
    this.target = target
    this.#deps = deps
    this.#clock = deps.clock ?? monotonicClock
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.state = 'connecting'
      await this.#attempt()
      if (signal.aborted) return
      await this.#wait(signal)
    }
  }
  /** Does not wait any longer. */
  hurry(): void {
    this.#hurry.abort()
  }

  async #attempt(): Promise<void> {
    let openedAt: number | undefined
    try {
      const { mayDial } = this.#deps
      if (mayDial && !(await mayDial(this.target))) throw new Error('another daemon on this database keeps the link')
      const end = await this.#deps.dial(this.target, () => {
        openedAt = this.#clock.now()
        this.state = 'connected'
        this.problem = undefined
      })
      this.problem = end.message
      // Two daemons with one name would take the link from each other for ever.
      if (end instanceof LinkReplaced) openedAt = undefined
    } catch (error) {
      if (error instanceof AlreadyLinked) {
        this.state = 'connected'
        this.problem = (await error.link.ended).message
        openedAt = -Infinity
      } else this.problem = messageOf(error)
    }
    // A link that breaks at once is a failure too.
    const lasted = openedAt !== undefined && this.#clock.now() - openedAt >= this.#deps.minMs
    this.#failures = lasted ? 0 : this.#failures + 1
  }

  /** Half of it at random: nodes that lost each other at the same time do not all come back at the same time. */
  async #wait(signal: AbortSignal): Promise<void> {
    const { minMs, maxMs, random } = this.#deps
    const ms = Math.min(maxMs, minMs * 2 ** Math.min(this.#failures, 20)) * (0.5 + random() / 2)
    this.state = 'waiting'
    this.nextAttemptAt = Date.now() + ms
    this.#hurry = new AbortController()
    await sleep(this.#clock, ms, AbortSignal.any([signal, this.#hurry.signal])).catch(() => undefined)
    this.nextAttemptAt = undefined
  }
}

/** Reads an entry of `network.peers`. */
export function readTarget(text: string): Target {
  const isCompatible = text.startsWith(COMPATIBLE)
  const rest = isCompatible ? text.slice(COMPATIBLE.length) : text
  const at = rest.lastIndexOf('@')
  const address = rest.slice(at + 1)
  const colon = address.lastIndexOf(':')
  return {
    host: address.slice(0, colon).replace(/^\[(.*)\]$/, '$1'),
    port: Number(address.slice(colon + 1)),
    nodeId: at === -1 ? undefined : rest.slice(0, at),
    address,
    isCompatible,
  }
}
const COMPATIBLE = 'compatible://'
