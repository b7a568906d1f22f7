import { setTimeout as delay } from 'node:timers/promises'
import type { Broadcast } from 'svc/internal'
import type { TurnEvent } from '../contract.ts'
import { failureOf } from '../turn/failure.ts'
import type { LiveTurn } from '../turn/live-turn.ts'
import { TOPIC } from './messages.ts'
import type { Message } from './messages.ts'

/** Each message between daemons costs a commit, so the words of this time share one. */
const GATHER_MS = 25

export interface EventSenderDeps {
  readonly broadcast: Pick<Broadcast, 'send'>
  /** A turn that waits or runs here. */
  readonly attach: (turnId: string) => LiveTurn | undefined
  /** Runs work that unloading waits for. It never rejects. */
  readonly background: (work: () => Promise<void>) => void
}

/** Sends the events of turns of this daemon to those that follow them elsewhere. */
export class EventSender {
  readonly #deps: EventSenderDeps
  /** By turn and daemon. */
  readonly #sending = new Map<string, AbortController>()
  constructor(deps: EventSenderDeps) {
    this.#deps = deps
  }

  /** Sends a daemon the events from one on, and no others any more. */
  start(turnId: string, from: number, to: string): void {
    const turn = this.#deps.attach(turnId)
    if (!turn) return this.#send({ type: 'gone', turnId }, to)
    const key = `${turnId} ${to}`
    this.#sending.get(key)?.abort()
    const controller = new AbortController()
    this.#sending.set(key, controller)
    this.#deps.background(async () => {
      await this.#run(turn, { from, to, signal: controller.signal })
      if (this.#sending.get(key) === controller) this.#sending.delete(key)
    })
  }
  /** Nobody listens there any more. */
  ended(daemon: string): void {
    for (const [key, controller] of this.#sending) if (key.endsWith(` ${daemon}`)) controller.abort()
  }

  async #run(
    turn: LiveTurn,
    { from: first, to, signal }: { readonly from: number; readonly to: string; readonly signal: AbortSignal },
  ): Promise<void> {
    const reader = turn.reader(first)
    signal.addEventListener('abort', () => void reader.return(), { once: true })
    for (;;) {
      const from = reader.position
      try {
        const step = await reader.next()
        if (signal.aborted || step.done === true) return
        const events: TurnEvent[] = [step.value]
        for (let more = reader.take(); more && more.done !== true; more = reader.take()) events.push(more.value)
        this.#send({ type: 'events', turnId: turn.id, from, next: reader.position, events }, to)
      } catch (error) {
        this.#send({ type: 'failed', turnId: turn.id, from, failure: failureOf(error) }, to)
        return
      }
      if (!reader.isAtEnd) await delay(GATHER_MS)
    }
  }

  #send(message: Message, to: string): void {
    this.#deps.broadcast.send(TOPIC, message, to)
  }
}
