import * as v from 'valibot'
import { Observable } from './observable.ts'

/** A message that is sent when the answer before it has ended. */
export interface Queued {
  readonly id: number
  readonly text: string
  /** The conversation it was written in; `undefined` before that was known. */
  readonly session: string | undefined
  /** Loaded with the page: the user sends it, since another tab may hold the same. */
  readonly held: boolean
}
const Stored = v.array(v.object({ text: v.string(), session: v.optional(v.string()) }))
const prefix = 'svc.queue.'
/** What a browser keeps for one origin is little, and a page with more waiting has other problems. */
const maxKept = 50

/**
 * Waiting messages, stored with the tab: a reload loses none, and a message is removed from the store before it is
 * sent.
 */
export class Queue extends Observable<readonly Queued[]> {
  readonly #place: string
  #nextId = 1
  constructor(agentId: string) {
    super([])
    this.#place = prefix + agentId
    super.set(read(this.#place).map(({ text, session }) => ({ id: this.#nextId++, text, session, held: true })))
  }
  override set(value: readonly Queued[]): void {
    super.set(value)
    const kept = value
      .slice(0, maxKept)
      .map(({ text, session }) => (session === undefined ? { text } : { text, session }))
    try {
      if (kept.length === 0) sessionStorage.removeItem(this.#place)
      else sessionStorage.setItem(this.#place, JSON.stringify(kept))
    } catch {
      /* Where nothing can be kept, they wait as long as the page is open. */
    }
  }
  add(text: string, session: string | undefined): void {
    this.update((waiting) => [...waiting, { id: this.#nextId++, text, session, held: false }])
  }
  /** Those without a conversation are not sent by themselves. */
  hold(): void {
    if (this.value.some((each) => each.session === undefined))
      this.update((waiting) => waiting.map((each) => (each.session === undefined ? { ...each, held: true } : each)))
  }
  take(id: number): Queued | undefined {
    const found = this.value.find((each) => each.id === id)
    if (found) this.update((waiting) => waiting.filter((each) => each.id !== id))
    return found
  }
  /** Those written before it was known where are of this conversation. */
  enter(session: string): void {
    if (this.value.some((each) => each.session === undefined))
      this.update((waiting) => waiting.map((each) => (each.session === undefined ? { ...each, session } : each)))
  }
}

function read(place: string): v.InferOutput<typeof Stored> {
  try {
    const parsed = v.safeParse(Stored, JSON.parse(sessionStorage.getItem(place) ?? '[]'))
    return parsed.success ? parsed.output : []
  } catch {
    return []
  } // Storage may be switched off, or hold what somebody else put there.
}
