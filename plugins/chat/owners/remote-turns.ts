import type { Broadcast } from 'svc/internal'
import type { Logger } from 'svc/sdk'
import type { Journal } from '../../journal/contract.ts'
import type { Cluster } from '../../cluster/contract.ts'
import type { TurnResult } from '../contract.ts'
import { refusalOf } from '../turn/failure.ts'
import { isOpen } from '../turn/acceptance.ts'
import type { LiveTurn } from '../turn/live-turn.ts'
import { TOPIC } from './messages.ts'
import type { Message, TurnFacts } from './messages.ts'
import { RemoteTurn } from './remote-turn.ts'

export interface RemoteTurnsDeps {
  readonly broadcast: Pick<Broadcast, 'send'>
  readonly cluster: Pick<Cluster, 'self' | 'isAlive'>
  readonly journal: Pick<Journal, 'find'>
  /** A turn that waits or runs here. */
  readonly attach: (turnId: string) => LiveTurn | undefined
  /** How a turn on record ended. Throws why it did not end well. */
  readonly recorded: (turnId: string) => Promise<TurnResult>
  readonly background: (work: () => Promise<void>) => void
  readonly log: Pick<Logger, 'warn'>
}

/**
 * The turns of other daemons that somebody follows here. Their events are sent by who works on them; what may be lost on
 * the way is found by a look at the journal, now and then and whenever a daemon or a connection ended.
 */
export class RemoteTurns {
  readonly #deps: RemoteTurnsDeps
  readonly #turns = new Map<string, RemoteTurn>()
  constructor(deps: RemoteTurnsDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#turns.size
  }
  /** A turn that another daemon works on. `isTold`: that one sends its events without being asked. */
  follow(facts: TurnFacts, owner: string, isTold = false): RemoteTurn {
    const known = this.#turns.get(facts.id)
    if (known) return known
    const turn = new RemoteTurn(facts, owner, () => this.#cancel(turn))
    this.#turns.set(turn.id, turn)
    if (!isTold) this.#ask(turn)
    return turn
  }
  /** One that was not accepted after all. */
  drop(turn: RemoteTurn): void {
    if (this.#turns.get(turn.id) === turn) this.#turns.delete(turn.id)
  }
  /** Those who follow turns here are told that this daemon ends. */
  close(error: unknown): void {
    for (const turn of this.#turns.values()) turn.fail(error)
    this.#turns.clear()
  }

  heard(message: Extract<Message, { type: 'events' | 'failed' | 'gone' }>, from: string): void {
    const turn = this.#turns.get(message.turnId)
    if (!turn || turn.owner !== from) return
    if (message.type === 'gone') return this.look([turn], true)
    if (message.from !== turn.position) {
      // Those in between were lost; what comes twice was sent before it was asked for again.
      if (message.from > turn.position) this.#ask(turn)
      return
    }
    if (message.type === 'failed') turn.fail(refusalOf(message.failure, turn.id))
    else {
      turn.position = message.next
      for (const event of message.events) turn.push(event)
    }
    if (turn.hasEnded) this.drop(turn)
  }

  /**
   * Looks after the turns that are followed: one may have ended, or gone on elsewhere, without a word. `isGone`: its
   * owner has just said that it has no such turn, so that it need not be asked again.
   */
  look(turns: Iterable<RemoteTurn> = this.#turns.values(), isGone = false): void {
    if (this.#turns.size === 0) return
    this.#deps.background(async () => {
      try {
        for (const turn of turns) await this.#lookAfter(turn, isGone)
      } catch (error) {
        this.#deps.log.warn('what became of turns of other daemons was not read', error)
      }
    })
  }
  async #lookAfter(turn: RemoteTurn, isGone: boolean): Promise<void> {
    const { cluster, journal, attach } = this.#deps
    if (turn.isBeingWritten) return
    const known = await journal.find(turn.id)
    if (turn.hasEnded) return this.drop(turn)
    if (!known || !isOpen(known)) return this.#end(turn)
    const { owner } = known
    const local = owner === cluster.self ? attach(turn.id) : undefined
    // While it belongs to nobody who is alive, it is about to be taken over.
    if (!local && (owner === cluster.self || !cluster.isAlive(owner))) return
    if (owner !== turn.owner) turn.moved(owner)
    else if (isGone) return
    else if (!turn.isSilent) {
      turn.isSilent = true
      if (!turn.isCancelled) return
    }
    if (local) this.#join(turn, local)
    else {
      if (turn.isCancelled) this.#cancel(turn)
      this.#ask(turn)
    }
  }
  async #end(turn: RemoteTurn): Promise<void> {
    try {
      turn.finish(await this.#deps.recorded(turn.id))
    } catch (error) {
      turn.fail(error)
    }
    this.drop(turn)
  }
  /** This daemon goes on with it itself. */
  #join(turn: RemoteTurn, local: LiveTurn): void {
    this.drop(turn)
    if (turn.isCancelled) local.cancel()
    this.#deps.background(async () => {
      try {
        for await (const event of local.events()) turn.push(event)
      } catch (error) {
        turn.fail(error)
      }
    })
  }

  #ask(turn: RemoteTurn): void {
    const { id: turnId, position, owner } = turn
    // A turn of this daemon that is not in its queue has ended.
    if (owner === this.#deps.cluster.self) this.look([turn], true)
    else this.#send({ type: 'follow', turnId, from: position }, owner)
  }
  #cancel({ id: turnId, owner }: RemoteTurn): void {
    if (owner === this.#deps.cluster.self) this.#deps.attach(turnId)?.cancel()
    else this.#send({ type: 'cancel', turnId }, owner)
  }
  #send(message: Message, to: string): void {
    this.#deps.broadcast.send(TOPIC, message, to)
  }
}
