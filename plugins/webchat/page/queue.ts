import * as v from 'valibot'
import type { AttachedFile } from './attached.ts'
import { Observable } from './observable.ts'
import { readTab, writeTab } from './tab-storage.ts'

/** A message that is sent when the answer before it has ended. */
export interface Queued {
  readonly id: number
  readonly text: string
  readonly files: readonly AttachedFile[]
  /** The conversation it was written in; `undefined` before that was known. */
  readonly session: string | undefined
  /** Loaded with the page: the user sends it, since another tab may hold the same. */
  readonly held: boolean
}
const Stored = v.array(
  v.object({
    text: v.string(),
    files: v.optional(v.array(v.object({ fileId: v.string(), name: v.string() })), []),
    session: v.optional(v.string()),
  }),
)
/** What a browser keeps for one origin is little, and a page with more waiting has other problems. */
const maxKept = 50

/**
 * Waiting messages, stored with the tab: a reload loses none, and a message is removed from the store before it is
 * sent.
 */
export class Queue extends Observable<readonly Queued[]> {
  readonly #name: string
  #nextId = 1
  constructor(agentId: string) {
    super([])
    this.#name = `queue.${agentId}`
    const kept = readTab(this.#name, Stored) ?? []
    super.set(kept.map(({ text, files, session }) => ({ id: this.#nextId++, text, files, session, held: true })))
  }
  override set(value: readonly Queued[]): void {
    super.set(value)
    const kept = value.slice(0, maxKept).map(({ text, files, session }) => ({ text, files, session }))
    writeTab(this.#name, kept.length === 0 ? undefined : kept)
  }
  add(text: string, files: readonly AttachedFile[], session: string | undefined): void {
    this.update((waiting) => [...waiting, { id: this.#nextId++, text, files, session, held: false }])
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
