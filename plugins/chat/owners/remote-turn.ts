import type { AcceptedTurn, TurnEvent, TurnResult } from '../contract.ts'
import { EventLog } from '../turn/event-log.ts'
import type { TurnFacts } from './messages.ts'

/** A turn that another daemon works on, as it is followed here. */
export class RemoteTurn implements AcceptedTurn {
  readonly id: string
  readonly agentId: string
  readonly sessionId: string
  readonly entryPoint: TurnFacts['entryPoint']
  /** The daemon that sends its events. */
  owner: string
  /** How many of the owner's events arrived. */
  position = 0
  /** Whether anything arrived since it was looked after last. */
  isSilent = true
  isCancelled = false
  /** Nothing of it is on record yet. */
  isBeingWritten = false
  /** See `LiveTurn`. */
  onDisk: Promise<unknown> | undefined
  /** What was answered so far. */
  text = ''
  readonly #log = new EventLog()
  readonly #result = Promise.withResolvers<TurnResult>()
  readonly #onCancel: (turn: RemoteTurn) => void

  constructor(facts: TurnFacts, owner: string, onCancel: (turn: RemoteTurn) => void) {
    this.id = facts.id
    this.agentId = facts.agentId
    this.sessionId = facts.sessionId
    this.entryPoint = facts.entryPoint
    this.owner = owner
    this.#onCancel = onCancel
    // Not every caller asks for the result.
    this.#result.promise.catch(() => undefined)
  }

  get hasEnded(): boolean {
    return this.#log.ended
  }
  events(): AsyncIterable<TurnEvent> {
    return this.#log
  }
  snapshot(): ReturnType<EventLog['snapshot']> {
    return this.#log.snapshot()
  }
  result(): Promise<TurnResult> {
    return this.#result.promise
  }
  cancel(): void {
    this.isCancelled = true
    if (!this.hasEnded) this.#onCancel(this)
  }

  push(event: TurnEvent): void {
    if (this.hasEnded) return
    this.isSilent = false
    if (event.type === 'text') this.text += event.delta
    this.#log.push(event)
    if (event.type !== 'end') return
    this.#log.end()
    this.#result.resolve(event.result)
  }
  fail(error: unknown): void {
    if (this.hasEnded) return
    this.#log.fail(error)
    this.#result.reject(error)
  }
  /** Another daemon goes on with it, and numbers its events anew. */
  moved(owner: string): void {
    this.owner = owner
    this.position = 0
    this.push({ type: 'phase', phase: 'retrying', detail: 'another daemon goes on with this' })
  }
  /** From what is recorded, where the end did not arrive. */
  finish(result: TurnResult): void {
    if (result.text.startsWith(this.text) && result.text !== this.text)
      this.push({ type: 'text', delta: result.text.slice(this.text.length) })
    this.push({ type: 'end', result })
  }
}
