import { ServerAway, untilAnswered } from 'svc/internal'
import type { Broadcast } from 'svc/internal'
import { KeyedQueue, parse } from 'svc/sdk'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Cluster, OwnedCount } from '../../cluster/contract.ts'
import type { Journal, Turn } from '../../journal/contract.ts'
import type { Block, Sessions } from '../../sessions/contract.ts'
import type { AcceptedTurn } from '../contract.ts'
import { isOpen, queueFull } from '../turn/acceptance.ts'
import { isTakenOver } from '../turn/failure.ts'
import { LiveTurn, readOptions } from '../turn/live-turn.ts'
import { ONE_CALL } from '../turn/record.ts'
import type { TurnRecord } from '../turn/record.ts'
import { endCall, recoverTurns } from '../turn/resume.ts'
import { Sender, TOPIC } from './messages.ts'
import type { RemoteTurns } from './remote-turns.ts'
import type { OwnerRow, OwnerStore, RelayedRow } from './store.ts'
import { writeTurn } from './write-turn.ts'

/** How often a message is tried anew when its session changes hands meanwhile. */
const ATTEMPTS = 8

export interface SessionOwnersDeps {
  readonly store: OwnerStore
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly broadcast: Pick<Broadcast, 'tell' | 'send'>
  readonly cluster: Cluster
  readonly journal: Journal
  readonly sessions: Sessions
  readonly record: TurnRecord
  readonly remote: RemoteTurns
  /** The turns that wait or run here. */
  readonly queue: {
    of(sessionId: string): readonly LiveTurn[]
    enqueue(turn: LiveTurn, onDisk: Promise<unknown>): void
  }
  /** Turns of one session that may wait or run. */
  readonly maxQueued: number
  /** Settles when the plugins are loaded that a resumed turn may need. */
  readonly loaded: () => Promise<void>
  /** Aborts when the plugin begins to unload. */
  readonly leaving: AbortSignal
  readonly log: Logger
}
/** A message that is on its way into its session. */
export interface Incoming {
  readonly turn: LiveTurn
  readonly blocks: readonly Block[]
  readonly also: readonly Statement[]
  /** Whether it runs at once when nothing of its session is before it. */
  readonly startsAlone: boolean
}
/** A session of this daemon. */
interface Hold extends OwnerRow {
  /** For every batch of its turns. */
  readonly fence: number
  readonly statements: readonly Statement[]
  /** Looks since anything happened in it. */
  unused: number
  /** It may have a turn that is not in the queue. */
  isUncertain: boolean
}

/**
 * Who works on the turns of a session, among the daemons on a database: one at a time, the one that took it. All that
 * concerns the ownership of a session happens one after the other here, so that its turns enter the queue in the order
 * in which they are on disk.
 */
export class SessionOwners {
  readonly #deps: SessionOwnersDeps
  readonly #inOrder = new KeyedQueue()
  readonly #held = new Map<string, Hold>()
  /** Of this daemon; no two of its holds have the same. */
  #lastFence = 0
  #isLeaving = false
  constructor(deps: SessionOwnersDeps) {
    this.#deps = deps
  }

  /** How many sessions each daemon has. */
  counts(): Promise<readonly OwnedCount[]> {
    return this.#deps.store.counts()
  }
  /** How many sessions this daemon has. */
  get size(): number {
    return this.#held.size
  }

  /** Settles when the turn is on disk. It is followed where another daemon works on its session. */
  accept(incoming: Incoming): Promise<AcceptedTurn> {
    const { sessionId } = incoming.turn
    return this.#inOrder.run(sessionId, async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.#place(incoming)
        } catch (error) {
          if (!isTakenOver(error) || attempt === ATTEMPTS) throw error
          await this.#lookAgain(sessionId)
        }
      }
    })
  }
  async #place(incoming: Incoming): Promise<AcceptedTurn> {
    const { sessionId } = incoming.turn
    const held = this.#held.get(sessionId)
    if (held) return this.#acceptHere(incoming, held, [this.#deps.store.requireNewest(held)])
    const row = await this.#deps.store.find(sessionId)
    if (!row) {
      const successor = this.#takesNothing ? await this.#successor() : undefined
      const fresh = this.#hold({ session_id: sessionId, owner: successor ?? this.#deps.cluster.self, relayed: 0 })
      const made = this.#deps.store.make(fresh)
      return successor === undefined ? this.#acceptHere(incoming, fresh, [made]) : this.#relay(incoming, fresh, [made])
    }
    if (await this.#isElsewhere(row)) return this.#relay(incoming, row)
    const taken = await this.#takeOver(row)
    return this.#acceptHere(incoming, taken, [this.#deps.store.requireNewest(taken)])
  }

  async #acceptHere(
    { turn, blocks, also, startsAlone }: Incoming,
    hold: Hold,
    required: readonly Statement[],
  ): Promise<AcceptedTurn> {
    const { record, queue } = this.#deps
    turn.fence = hold.statements
    const starts = startsAlone && queue.of(turn.sessionId).length === 0
    this.#checkQueueLength(queue.of(turn.sessionId).length)
    const statements = [...required, ...record.accepted(turn, blocks, starts ? 'running' : 'queued'), ...also]
    const onDisk = writeTurn(this.#deps, turn.id, statements)
    queue.enqueue(turn, onDisk)
    try {
      await onDisk
    } catch (error) {
      hold.isUncertain ||= error instanceof ServerAway && error.mayBeWritten
      throw error
    }
    hold.unused = 0
    this.#held.set(turn.sessionId, hold)
    return turn
  }

  /** Writes a turn for the daemon that works on its session, and follows it. */
  async #relay(
    { turn, blocks, also }: Incoming,
    row: Omit<OwnerRow, 'relayed'>,
    required: readonly Statement[] = [],
  ): Promise<AcceptedTurn> {
    const { store, record, remote, broadcast, cluster } = this.#deps
    const { id: turnId, sessionId, sender } = turn
    this.#checkQueueLength((await this.#openTurns(sessionId)).length)
    const followed = remote.follow(turn, row.owner, true)
    followed.isBeingWritten = true
    try {
      followed.onDisk = writeTurn(this.#deps, turnId, [
        ...required,
        store.relay(row, {
          turn_id: turnId,
          accepted_by: cluster.self,
          sender: sender === undefined ? null : JSON.stringify(sender),
        }),
        ...record.accepted(turn, blocks, 'queued', row.owner),
        ...also,
        ...broadcast.tell(TOPIC, { type: 'relayed', to: row.owner, sessionId, turnId }),
      ])
      await followed.onDisk
    } catch (error) {
      remote.drop(followed)
      throw error
    }
    followed.isBeingWritten = false
    return followed
  }

  #checkQueueLength(length: number): void {
    if (length >= this.#deps.maxQueued) throw queueFull(this.#deps.maxQueued)
  }

  /** The same for every session of this daemon. */
  async pickUpAll(): Promise<void> {
    for (const sessionId of this.#held.keys()) await this.pickUp(sessionId)
  }
  /** Turns of a session of this daemon that others accepted for it. Settles when they are in the queue. */
  pickUp(sessionId: string): Promise<void> {
    return this.#inOrder.run(sessionId, () => this.#lookAgain(sessionId))
  }
  /** The session may have changed hands, or have got turns from others. */
  async #lookAgain(sessionId: string): Promise<void> {
    const row = await this.#deps.store.find(sessionId)
    const held = this.#held.get(sessionId)
    if (held && (row?.owner !== held.owner || row.fence !== held.fence)) this.#lose(held)
    else if (held) await this.#enqueueRelayed(held)
    else if (row?.owner === this.#deps.cluster.self && !this.#takesNothing) await this.#takeOver(row)
  }
  async #enqueueRelayed(hold: Hold): Promise<void> {
    const { store, journal, queue, record } = this.#deps
    for (const relayed of await store.relayed(hold.session_id, hold.relayed)) {
      const turn = await journal.find(relayed.turn_id)
      hold.relayed = relayed.number
      hold.unused = 0
      if (!turn || !isOpen(turn) || queue.of(turn.sessionId).some(({ id }) => id === turn.id)) continue
      const live = toLive(turn, hold.statements, relayed)
      const isFirst = queue.of(hold.session_id).length === 0
      const begin = (): Statement[] => [
        record.running(live.id),
        store.forgetRelayed(turn.sessionId, relayed.number - 1),
      ]
      const begun = (): Promise<void> => untilAnswered(() => record.commit(live, begin()), live.signal)
      queue.enqueue(live, isFirst ? begun() : Promise.resolve())
    }
  }
  /** Another daemon has it: nothing more is written of its turns here. */
  #lose(hold: Hold): void {
    this.#held.delete(hold.session_id)
    for (const turn of this.#deps.queue.of(hold.session_id)) if (turn.fence === hold.statements) turn.stop('lost')
  }
  /** A batch of a turn was refused. */
  lost(turn: LiveTurn): void {
    const hold = this.#held.get(turn.sessionId)
    if (hold && hold.statements === turn.fence) this.#lose(hold)
  }

  /** Goes on with the turns of a session that nobody alive works on. */
  async #takeOver(row: OwnerRow): Promise<Hold> {
    const { store, db, journal, cluster } = this.#deps
    const { session_id: sessionId, owner, relayed } = row
    this.#lastFence = Math.max(this.#lastFence, row.fence)
    const hold = this.#hold({ session_id: sessionId, owner: cluster.self, relayed })
    await db.batch([
      ...(owner === '' || owner === cluster.self ? [] : cluster.unlessAlive(owner)),
      store.takeOver(row, cluster.self, hold.fence),
      ...journal.adopt(sessionId, ONE_CALL),
    ])
    return this.#resume(hold)
  }
  async #resume(hold: Hold): Promise<Hold> {
    const { journal, sessions, record, queue, loaded, store, cluster } = this.#deps
    const { session_id: sessionId, statements: fence } = hold
    const here = new Set(queue.of(sessionId).map(({ id }) => id))
    const [open, relayed] = await Promise.all([this.#openTurns(sessionId), store.relayed(sessionId, 0)])
    const followed = new Set(relayed.filter((each) => cluster.isAlive(each.accepted_by)).map((each) => each.turn_id))
    const left = open
      .filter(({ id }) => !here.has(id))
      // Nothing was done for it yet, and whoever accepted it still waits.
      .map(
        (turn) =>
          ({
            ...turn,
            fence,
            onCrash: turn.state === 'queued' && followed.has(turn.id) ? 'resume' : turn.onCrash,
          }) as const,
      )
    const order = await sessions.order(
      sessionId,
      left.map(({ id }) => id),
    )
    left.sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0))
    const resumed = await recoverTurns({ journal, sessions, record }, left)
    // From here on nothing fails: what was taken is in the queue.
    hold.unused = 0
    hold.isUncertain = false
    this.#held.set(sessionId, hold)
    const ready = resumed.length === 0 ? undefined : loaded()
    for (const turn of resumed) queue.enqueue(turn, ready ?? Promise.resolve())
    return hold
  }

  /** Goes on with what nobody alive works on, after a daemon ended or handed its sessions over, and at the start. */
  async recover(): Promise<void> {
    const { store, cluster, journal, record, log } = this.#deps
    if (this.#takesNothing) return
    for (const turn of await journal.orphans(ONE_CALL)) await endCall({ record }, turn)
    const members = (await cluster.members()).map(({ id }) => id).filter((id) => id !== cluster.self)
    for (const { session_id: sessionId } of await store.notOf(members)) {
      if (this.#isLeaving) return
      if (this.#held.get(sessionId)?.isUncertain === false) continue
      try {
        await this.#inOrder.run(sessionId, () => this.#claim(sessionId))
      } catch (error) {
        if (!isTakenOver(error))
          log.error(`the turns of session ${sessionId} were not taken over; it is tried again`, error)
      }
    }
  }
  async #claim(sessionId: string): Promise<void> {
    const held = this.#held.get(sessionId)
    if (held?.isUncertain) await this.#resume(held)
    if (held) return
    const row = await this.#deps.store.find(sessionId)
    if (row && !this.#belongsToOther(row)) await this.#takeOver(row)
  }
  /** The open turns of an earlier version, which knew no owners of sessions. */
  async recoverUnowned(): Promise<void> {
    const { store, db, journal, cluster } = this.#deps
    const abandoned = (await journal.open()).filter(
      ({ owner, options }) => options !== ONE_CALL && !cluster.isAlive(owner),
    )
    for (const sessionId of new Set(abandoned.map((turn) => turn.sessionId))) {
      await this.#inOrder.run(sessionId, async () => {
        if (this.#held.has(sessionId) || (await store.find(sessionId))) return
        const hold = this.#hold({ session_id: sessionId, owner: cluster.self, relayed: 0 })
        try {
          await db.batch([store.make(hold), ...journal.adopt(sessionId, ONE_CALL)])
        } catch (error) {
          if (isTakenOver(error)) return
          throw error
        }
        await this.#resume(hold)
      })
    }
  }

  /**
   * Gives up sessions in which nothing has happened for so many calls of this function, so that the next message is
   * answered where it arrives.
   */
  async giveUpUnused(looks: number): Promise<void> {
    for (const hold of this.#held.values())
      if (++hold.unused > looks) await this.#inOrder.run(hold.session_id, () => this.#giveUp(hold, looks))
  }
  async #giveUp(hold: Hold, looks: number): Promise<void> {
    const { store, db, queue } = this.#deps
    const sessionId = hold.session_id
    if (this.#held.get(sessionId) !== hold) return
    if (queue.of(sessionId).length > 0) hold.unused = 0
    if (hold.unused <= looks) return
    this.#held.delete(sessionId)
    const [given] = await db.batch(store.giveUp(hold))
    // A turn was relayed to it just now.
    if (given?.changes === 0) {
      this.#held.set(sessionId, hold)
      await this.#lookAgain(sessionId)
    }
  }
  /** At the end, when no turn runs here any more: what is open goes on elsewhere, or here after the next start. */
  async handOver(): Promise<void> {
    const { store, db, broadcast } = this.#deps
    this.#isLeaving = true
    for (const hold of this.#held.values()) {
      await this.#inOrder.run(hold.session_id, async () => {
        if (!this.#held.delete(hold.session_id)) return
        const isDone = (await this.#openTurns(hold.session_id)).length === 0
        const [given] = isDone ? await db.batch(store.giveUp(hold)) : []
        if (given?.changes !== 1) await db.batch([store.leave(hold), ...broadcast.tell(TOPIC, { type: 'left' })])
      })
    }
  }

  /** Whether a turn of the session waits or runs at any daemon. */
  async isBusy(sessionId: string): Promise<boolean> {
    return (await this.#openTurns(sessionId)).length > 0
  }
  /** Turns of other daemons that run, of an agent or one of its sessions. */
  async runningElsewhere(agentId: string, sessionId?: string): Promise<readonly Turn[]> {
    const open = await this.#deps.journal.open({ agentId, ...(sessionId !== undefined && { sessionId }) })
    const elsewhere = open.filter((turn) => this.isElsewhere(turn))
    const running = elsewhere.filter(({ state }) => state !== 'queued')
    // One that began just now may not say so yet.
    const begins = elsewhere.filter(
      (turn, at) => elsewhere.findIndex(({ sessionId: other }) => other === turn.sessionId) === at,
    )
    return [...running, ...begins.filter((turn) => !running.some((other) => other.sessionId === turn.sessionId))]
  }
  /** The open turns of a session, in its order. */
  async inOrder(sessionId: string): Promise<readonly Turn[]> {
    const open = await this.#openTurns(sessionId)
    if (open.length < 2) return open
    const order = await this.#deps.sessions.order(
      sessionId,
      open.map(({ id }) => id),
    )
    return open.toSorted((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0))
  }
  isElsewhere(turn: Turn): boolean {
    return isOpen(turn) && turn.owner !== this.#deps.cluster.self && turn.options !== ONE_CALL
  }

  async #openTurns(sessionId: string): Promise<readonly Turn[]> {
    return (await this.#deps.journal.open({ sessionId })).filter(({ options }) => options !== ONE_CALL)
  }
  #belongsToOther({ owner }: OwnerRow): boolean {
    const { cluster } = this.#deps
    return owner !== cluster.self && owner !== '' && cluster.isAlive(owner)
  }
  /** Certain, also of a daemon that joined just now. */
  async #isElsewhere(row: OwnerRow): Promise<boolean> {
    if (row.owner === '' || row.owner === this.#deps.cluster.self) return false
    return this.#belongsToOther(row) || (await this.#deps.cluster.members()).some(({ id }) => id === row.owner)
  }
  get #takesNothing(): boolean {
    return this.#isLeaving || this.#deps.leaving.aborted || this.#deps.cluster.isDraining
  }
  /** Another daemon for a session that this one does not begin any more. */
  async #successor(): Promise<string | undefined> {
    const { cluster } = this.#deps
    const others = (await cluster.members()).filter(({ id, state }) => id !== cluster.self && state === 'active')
    return others[Math.floor(Math.random() * others.length)]?.id
  }
  #hold(row: Omit<OwnerRow, 'fence'>): Hold {
    const owned = { ...row, fence: ++this.#lastFence }
    return { ...owned, statements: [this.#deps.store.requireOwned(owned)], unused: 0, isUncertain: false }
  }
}

/** A turn that another daemon accepted, as if it had been accepted here. */
function toLive(turn: Turn, fence: readonly Statement[], { sender }: RelayedRow): LiveTurn {
  const live = new LiveTurn({
    ...turn,
    options: readOptions(turn.options),
    resumed: false,
    resumable: turn.onCrash === 'resume',
    sender: sender === null ? undefined : parse(Sender, sender),
  })
  live.fence = fence
  return live
}
