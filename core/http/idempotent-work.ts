import { hash, randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { Refusal } from '../errors/error.ts'
import type { OnDefect } from '../errors/defect.ts'
import type { Statement } from '../storage/database.ts'
import { ServerAway } from '../storage/failure.ts'
import type { Reservation, Reservations, StoredAnswer } from '../storage/reservations.ts'
import type { Broadcast } from '../storage/broadcast.ts'
import { Answer } from './answer.ts'
import { INVALID_KEY, MAX_KEY_CHARS } from './idempotency.ts'
import type { DaemonLiveness, KeyOwners } from './key-owners.ts'
import type { EventStream } from './route.ts'
import { readJson } from '../schema/nesting.ts'

/** One request that carries an Idempotency-Key. */
export interface Work {
  readonly scope: string
  readonly key: string
  /** Hash of everything that determines the effect. */
  readonly fingerprint: string
  /** The caller does not wait any more. */
  readonly signal?: AbortSignal
  handle(effectId: string): unknown
  /**
   * The result of the work with this id, if no answer is stored; `undefined` if it never started. Throws the error it
   * failed with.
   */
  readonly recall?: (effectId: string) => unknown
  /** `false`: an answer is not stored, `recall` makes it again. */
  readonly keepsAnswer?: boolean | undefined
  /** The whole answer; `undefined` when the value is a stream. */
  render(value: unknown): Answer | undefined
  failed(error: unknown): Answer
}
/** `value` is a stream, which is not stored: the route can produce it again. */
export type Once = { readonly replayed: boolean } & ({ readonly answer: Answer } | { readonly value: EventStream })
type Settled =
  | { readonly kind: 'stored'; readonly stored: StoredAnswer }
  | { readonly kind: 'recall'; readonly effectId: string }
  /** Refused before it had an effect: a waiting request tries itself. */
  | { readonly kind: 'released' }
interface Outcome {
  readonly once: Once
  readonly as: Settled
}
/** What this attempt works on. */
interface Mine extends Work {
  /** Of the reservation: the daemon and the attempt. */
  readonly owner: string
  readonly effectId: string
}
interface Flight {
  readonly fingerprint: string
  readonly settled: Promise<Settled>
}

export interface IdempotencyDeps {
  readonly reservations: Reservations
  readonly broadcast: Broadcast
  readonly onDefect: OnDefect
  readonly now?: () => number
}

/**
 * The same key with the same body has one effect and one answer, for 24 hours. The reservation is stored before the
 * work, with the id of the effect; the answer is stored before it is sent. After a crash the route is asked for the
 * result of that id; if there is none, the work runs under the same id. What another daemon on the database works on
 * is waited for, unless that one is dead.
 *
 * Decision: a failure after the work started is stored and replayed like any answer, because effects may have
 * happened. A refusal before that frees the key; where it is not known whether an effect happened, the key stays with
 * its id.
 */
export class IdempotentWork implements Disposable {
  readonly #deps: IdempotencyDeps
  readonly #flights = new Map<string, Flight>()
  /** Absent where no other daemon can be. */
  readonly #others: Promise<KeyOwners> | undefined
  constructor(deps: IdempotencyDeps) {
    this.#deps = deps
    if (deps.broadcast.isShared)
      this.#others = import('./key-owners.ts').then(
        (module) => new module.KeyOwners(deps.broadcast, (name) => this.#flights.get(name)?.settled),
      )
  }

  /** Without it the work of another daemon on the database is never taken over. */
  setLiveness(liveness: DaemonLiveness | undefined): void {
    void this.#others?.then((others) => others.setLiveness(liveness))
  }

  /** Throws `invalid_request` for an invalid key, and `conflict` if the key was used for another request. */
  async answer(work: Work): Promise<Once> {
    if (!/^[\x21-\x7e]+$/.test(work.key) || work.key.length > MAX_KEY_CHARS)
      throw new Refusal('invalid_request', INVALID_KEY)
    const name = nameOf(work)
    for (;;) {
      const flight = this.#flights.get(name)
      if (!flight) break
      if (flight.fingerprint !== work.fingerprint) throw usedBefore()
      const settled = await flight.settled
      if (settled.kind !== 'released') return this.#replay(work, settled)
    }
    const { promise, resolve } = Promise.withResolvers<Settled>()
    this.#flights.set(name, { fingerprint: work.fingerprint, settled: promise })
    let settled: Settled = { kind: 'released' }
    try {
      const { once, as } = await this.#first(work)
      settled = as
      return once
    } finally {
      this.#flights.delete(name)
      resolve(settled)
    }
  }

  [Symbol.dispose](): void {
    void this.#others?.then((others) => others[Symbol.dispose]())
  }

  #now(): number {
    return this.#deps.now?.() ?? Date.now()
  }

  async #first(work: Work): Promise<Outcome> {
    const { reservations } = this.#deps
    // Of this attempt: nobody settles or takes over what has been taken over meanwhile.
    const owner = `${this.#deps.broadcast.daemonId}/${randomUUID()}`
    const wanted = { fingerprint: work.fingerprint, effectId: effectId(this.#now()), owner }
    for (;;) {
      const found = await reservations.reserve(work, wanted)
      const mine: Mine = { ...work, owner, effectId: found.effectId }
      if (found.made) return this.#run(mine)
      if (found.fingerprint !== work.fingerprint) throw usedBefore()
      if (found.answer !== undefined) {
        const as: Settled =
          found.answer === 'recall'
            ? { kind: 'recall', effectId: found.effectId }
            : { kind: 'stored', stored: found.answer }
        return { once: await this.#replay(work, as), as }
      }
      if (await this.#takeOver(mine, found)) return this.#resolve(mine)
    }
  }

  /** The reservation is open: somebody works on it, or its process died, or the answer could not be stored. */
  async #takeOver(work: Mine, found: Reservation): Promise<boolean> {
    const { reservations, broadcast } = this.#deps
    const takeOver = (conditions: readonly Statement[] = []): Promise<boolean> =>
      reservations.takeOver(work, found.owner, work.owner, conditions)
    const others = await this.#others
    const isOwn = found.owner.startsWith(`${broadcast.daemonId}/`)
    return !others || isOwn ? takeOver() : others.takeOver({ ...found, name: nameOf(work) }, takeOver, work.signal)
  }

  async #resolve(work: Mine): Promise<Outcome> {
    let value: unknown
    try {
      value = await work.recall?.(work.effectId)
    } catch (error) {
      if (error instanceof ServerAway) return this.#leftOpen(work, error)
      return this.#failed(work, error, true)
    }
    if (value === undefined) return this.#run(work, true)
    return this.#done(work, value, true)
  }

  /** `isRepeated`: an earlier attempt had the same id. */
  async #run(work: Mine, isRepeated = false): Promise<Outcome> {
    let value: unknown
    try {
      value = await work.handle(work.effectId)
    } catch (error) {
      const hasBegun = await this.#hasBegun(work, error)
      // What the earlier attempt wrote was committed while this one tried.
      if (hasBegun === true && isRepeated && work.recall) return this.#resolve(work)
      if (hasBegun === true) return this.#failed(work, error, false)
      if (hasBegun === undefined) return this.#leftOpen(work, error)
      await this.#deps.reservations.release(work)
      return { once: { answer: work.failed(error), replayed: false }, as: { kind: 'released' } }
    }
    return this.#done(work, value, false)
  }

  /** `undefined`: that is not known. */
  async #hasBegun({ recall, effectId: id }: Mine, error: unknown): Promise<boolean | undefined> {
    // Something was not there, before the effect or after it.
    if (!recall) return isUnavailable(error) ? undefined : !(error instanceof Refusal)
    // `recall` throws if the work failed, so it had started.
    try {
      if ((await recall(id)) !== undefined) return true
      // A commit may still come that was on its way when the connection broke.
      return error instanceof ServerAway && error.mayBeWritten ? undefined : false
    } catch (failure) {
      return failure instanceof ServerAway ? undefined : true
    }
  }

  /** What came of the work is found out when the key is used again: then it is done under the same id. */
  #leftOpen(work: Mine, error: unknown): Outcome {
    return { once: { answer: work.failed(error), replayed: false }, as: { kind: 'released' } }
  }

  /** What says when to ask again is not the last word: the route is asked then what came of the work. */
  async #failed(work: Mine, error: unknown, replayed: boolean): Promise<Outcome> {
    const answer = work.failed(error)
    const isOver = !(isUnavailable(error) && error.retryAfterSecs)
    if (!work.recall || isOver) return this.#kept(work, answer, replayed)
    await this.#settle(work, 'recall')
    return { once: { answer, replayed }, as: { kind: 'recall', effectId: work.effectId } }
  }

  async #done(work: Mine, value: unknown, replayed: boolean): Promise<Outcome> {
    const answer = work.render(value)
    const isStored = work.keepsAnswer !== false || !work.recall
    if (answer && isStored) return this.#kept(work, answer, replayed)
    await this.#settle(work, 'recall')
    if (answer) return { once: { answer, replayed }, as: { kind: 'recall', effectId: work.effectId } }
    return { once: { value: value as EventStream, replayed }, as: { kind: 'recall', effectId: work.effectId } }
  }

  async #kept(work: Mine, answer: Answer, replayed: boolean): Promise<Outcome> {
    const { status, body, headers } = answer
    if (body !== null && typeof body !== 'string')
      throw new Error('an idempotent route answers JSON or an event stream')
    const header = (name: string) => (headers.includes(name) ? headers[headers.indexOf(name) + 1] : undefined)
    const retryAfter = header('retry-after')
    const stored: StoredAnswer = {
      status,
      body: body ?? '',
      type: header('content-type') ?? 'application/json',
      ...(retryAfter === undefined ? {} : { retryAfter: Number(retryAfter) }),
    }
    const kept = await this.#settle(work, stored)
    return {
      once: { answer, replayed },
      as: kept || !work.recall ? { kind: 'stored', stored } : { kind: 'recall', effectId: work.effectId },
    }
  }

  async #settle(work: Mine, answer: StoredAnswer | 'recall'): Promise<boolean> {
    try {
      return await this.#deps.reservations.settle(work, answer)
    } catch (error) {
      // The work is done, and the caller gets its answer. The open reservation is resolved when the key is used again.
      this.#deps.onDefect(error, 'idempotency keys')
      return false
    }
  }

  async #replay(work: Work, settled: Exclude<Settled, { kind: 'released' }>): Promise<Once> {
    if (settled.kind === 'stored') {
      const { status, type, body, retryAfter } = settled.stored
      const headers = status === 204 ? [] : ['content-type', type, 'content-length', String(Buffer.byteLength(body))]
      if (retryAfter !== undefined) headers.push('retry-after', String(retryAfter))
      return { answer: new Answer(status, headers, status === 204 ? null : body), replayed: true }
    }
    const value = await work.recall?.(settled.effectId)
    if (value === undefined)
      throw new Refusal('conflict', 'What this Idempotency-Key was used for is not there any more')
    const answer = work.render(value)
    return answer ? { answer, replayed: true } : { value: value as EventStream, replayed: true }
  }
}

function isUnavailable(error: unknown): error is Refusal {
  return error instanceof Refusal && error.code === 'service_unavailable'
}
const nameOf = ({ scope, key }: Work): string => `${scope}\n${key}`
function usedBefore(): Refusal {
  return new Refusal('conflict', 'This Idempotency-Key was used for another request')
}

/** Fingerprint of the query and the body. The order of JSON keys does not matter. */
export function fingerprintOf(query: string, body: Uint8Array): string {
  let text: string | Uint8Array = body
  // A body that is not JSON is compared byte by byte.
  try {
    text = JSON.stringify(sorted(readJson(Buffer.from(body).toString('utf8'))))
  } catch {
    text = body
  }
  return hash('sha256', Buffer.concat([Buffer.from(`${query}\n`), Buffer.from(text)]), 'hex')
}
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  )
}

/** A UUIDv7 starts with the time, so that rows with such ids are stored in order. */
function effectId(now: number): string {
  return uuidv7({ msecs: now })
}
