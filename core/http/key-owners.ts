import * as v from 'valibot'
import { Refusal } from '../errors/error.ts'
import { isNotHeld } from '../storage/failure.ts'
import type { Broadcast } from '../storage/broadcast.ts'
import type { Statement } from '../storage/database.ts'

/** Which daemons on the database are alive. */
export interface DaemonLiveness {
  /** How many are alive, this one included. */
  count(): number
  isAlive(daemonId: string): boolean
  /** For the batch that takes over what a daemon owned: makes it fail while that one is alive. */
  unlessAlive(daemonId: string): readonly Statement[]
}

const TOPIC = 'core.idempotency'
/** A message may be lost: the row is read again, and the owner asked again. */
const ASK_EVERY_MS = 1_000

const Question = v.object({ ask: v.string(), name: v.string() })
const Told = v.object({ about: v.string(), idle: v.boolean() })

/** Asks the other daemons on a database what became of the requests they work on, and answers their questions. */
export class KeyOwners implements Disposable {
  readonly #broadcast: Broadcast
  readonly #working: (name: string) => Promise<unknown> | undefined
  readonly #subscription: Disposable
  readonly #waiting = new Map<string, (idle: boolean) => void>()
  /** Whom to tell of a request that is worked on here. */
  readonly #asked = new Set<string>()
  #liveness: DaemonLiveness | undefined

  /** `working`: settles when this daemon has ended its work under a key; `undefined` if it does none. */
  constructor(broadcast: Broadcast, working: (name: string) => Promise<unknown> | undefined) {
    this.#broadcast = broadcast
    this.#working = working
    this.#subscription = broadcast.on(TOPIC, {
      heard: (data, from) => this.#heard(data, from),
      missed: () => {
        for (const wake of this.#waiting.values()) wake(false)
      },
    })
  }

  setLiveness(liveness: DaemonLiveness | undefined): void {
    this.#liveness = liveness
  }

  /**
   * Takes over what another daemon has reserved, once that one is dead or does nothing under it; waits for news as long
   * as it works. `false`: read the reservation again. Throws `service_unavailable` when nobody waits any more, and while
   * it is not known who is alive.
   */
  async takeOver(
    { owner, name }: { readonly owner: string; readonly name: string },
    take: (conditions?: readonly Statement[]) => Promise<boolean>,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const [daemonId = ''] = owner.split('/')
    if (!this.#liveness || signal?.aborted)
      throw new Refusal('service_unavailable', 'A request with this Idempotency-Key is being worked on', {
        retryAfterSecs: 1,
      })
    if (!this.#liveness.isAlive(daemonId))
      try {
        return await take(this.#liveness.unlessAlive(daemonId))
      } catch (error) {
        // It has joined a moment ago, and is not known here yet.
        if (!(error instanceof Refusal) || !isNotHeld(error.cause)) throw error
      }
    return (await this.#isIdle(daemonId, owner, name, signal)) && take()
  }

  /**
   * Until there may be news of what `daemonId` does under a key. `true`: it does nothing, and never will, under this
   * reservation.
   */
  async #isIdle(
    daemonId: string,
    reservation: string,
    name: string,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), ASK_EVERY_MS)
    const stop = (): void => resolve(false)
    signal?.addEventListener('abort', stop)
    this.#waiting.set(reservation, resolve)
    try {
      this.#broadcast.send(TOPIC, { ask: reservation, name }, daemonId)
      return await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
      this.#waiting.delete(reservation)
    }
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]()
    for (const wake of this.#waiting.values()) wake(false)
  }

  #heard(data: unknown, from: string): void {
    if (v.is(Question, data)) this.#answer(data.ask, data.name, from)
    else if (v.is(Told, data)) this.#waiting.get(data.about)?.(data.idle)
  }
  #answer(reservation: string, name: string, from: string): void {
    const tell = (idle: boolean): void => this.#broadcast.send(TOPIC, { about: reservation, idle }, from)
    const work = this.#working(name)
    if (!work) return tell(true)
    const question = `${from} ${reservation}`
    if (this.#asked.has(question)) return
    this.#asked.add(question)
    void work.then(() => {
      this.#asked.delete(question)
      tell(false)
    })
  }
}
