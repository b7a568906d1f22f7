import * as v from 'valibot'
import type { Broadcast, Clock } from 'svc/internal'

/** Between two messages about one lane. Whoever hears one goes on until no job is due. */
const NOTIFY_INTERVAL_MS = 100

const Cancelled = v.object({ lane: v.string(), id: v.string() })

interface SignalDeps {
  readonly broadcast: Broadcast
  readonly clock: Clock
}
interface LaneListener {
  waiting(lane: string): void
  cancelled(lane: string, id: string): void
  /** Anything may have been said that did not arrive. */
  missed(): void
}

/** What the daemons on a database tell each other of their jobs. It may be lost: they also look from time to time. */
export class LaneSignals implements Disposable {
  readonly #deps: SignalDeps
  readonly #subscriptions: readonly Disposable[]
  /** By lane, the timers of messages that were sent a moment ago; `true`: another one is to follow. */
  readonly #sent = new Map<string, { readonly cancel: () => void; isDue: boolean }>()

  constructor(deps: SignalDeps, listener: LaneListener) {
    this.#deps = deps
    const { broadcast } = deps
    this.#subscriptions = [
      broadcast.on('queue.waiting', {
        heard: (lane) => typeof lane === 'string' && listener.waiting(lane),
        missed: () => listener.missed(),
      }),
      broadcast.on('queue.cancelled', {
        heard(data) {
          const { success, output } = v.safeParse(Cancelled, data)
          if (success) listener.cancelled(output.lane, output.id)
        },
        // The next renewal finds what was cancelled.
        missed() {},
      }),
    ]
  }

  /** A job of a lane is due that this daemon cannot run now. */
  waiting(lane: string): void {
    const { broadcast, clock } = this.#deps
    if (!broadcast.isShared) return
    const sent = this.#sent.get(lane)
    if (sent) {
      sent.isDue = true
      return
    }
    broadcast.send('queue.waiting', lane)
    const cancel = clock.after(NOTIFY_INTERVAL_MS, () => {
      const isDue = this.#sent.get(lane)?.isDue ?? false
      this.#sent.delete(lane)
      if (isDue) this.waiting(lane)
    })
    this.#sent.set(lane, { cancel, isDue: false })
  }
  /** The worker of a job may be in any daemon. */
  cancelled(lane: string, id: string): void {
    this.#deps.broadcast.send('queue.cancelled', { lane, id })
  }

  [Symbol.dispose](): void {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]()
    for (const { cancel } of this.#sent.values()) cancel()
    this.#sent.clear()
  }
}
