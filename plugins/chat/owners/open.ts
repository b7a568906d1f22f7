import * as v from 'valibot'
import { pluginsLoaded, untilAnswered } from 'svc/internal'
import type { Broadcast } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Jobs, Logger, PluginDatabase } from 'svc/sdk'
import type { Cluster } from '../../cluster/contract.ts'
import type { Journal, Turn } from '../../journal/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { ChatDeps } from '../composition.ts'
import type { ChatConfig } from '../config.ts'
import type { TurnResult } from '../contract.ts'
import type { LiveTurn } from '../turn/live-turn.ts'
import type { TurnRecord } from '../turn/record.ts'
import { EventSender } from './event-sender.ts'
import { Message, TOPIC } from './messages.ts'
import type { RemoteTurn } from './remote-turn.ts'
import { RemoteTurns } from './remote-turns.ts'
import { SessionOwners } from './session-owners.ts'
import type { SessionOwnersDeps } from './session-owners.ts'
import { OwnerStore } from './store.ts'

export interface SharedTurnsDeps extends Pick<SessionOwnersDeps, 'maxQueued' | 'loaded' | 'leaving'> {
  readonly db: PluginDatabase
  readonly broadcast: Broadcast
  readonly cluster: Cluster
  readonly journal: Journal
  readonly sessions: Sessions
  readonly record: TurnRecord
  readonly log: Logger
  readonly background: (work: () => Promise<void>) => void
  readonly isListening: () => boolean
  /** How a turn on record ended. Throws why it did not end well. */
  readonly recorded: (turnId: string) => Promise<TurnResult>
  readonly chat: {
    attach(turnId: string): LiveTurn | undefined
    turnsOf(sessionId: string): readonly LiveTurn[]
    enqueue(turn: LiveTurn, onDisk: Promise<unknown>): void
    cancelAll(where: CancelledTurns): void
    releaseWaiting(): void
  }
  readonly sessionStream: {
    /** Sessions that somebody follows here. */
    readonly sessionIds: readonly string[]
    accepted(turn: RemoteTurn, onDisk: Promise<unknown>): void
    show(sessionId: string, event: string, data: object): void
    /** Events may be missing: who follows a session comes back for a snapshot. */
    missed(): void
  }
}
export interface CancelledTurns {
  readonly agentId: string
  readonly sessionId?: string
  /** Its messages are deleted too. */
  readonly forget?: boolean
}

/** The turns of a daemon that shares its database: who works on them, and what is said of them to the others. */
export class SharedTurns {
  readonly owners: SessionOwners
  readonly #deps: SharedTurnsDeps
  readonly #remote: RemoteTurns
  readonly #sender: EventSender
  /** Sessions that somebody follows at another daemon, by its id. */
  readonly #watched = new Map<string, ReadonlySet<string>>()
  readonly #subscription: Disposable
  constructor(deps: SharedTurnsDeps) {
    const { chat, broadcast } = deps
    this.#deps = deps
    const attach = (turnId: string): LiveTurn | undefined => chat.attach(turnId)
    this.#remote = new RemoteTurns({ ...deps, attach })
    this.#sender = new EventSender({ ...deps, attach })
    this.owners = new SessionOwners({
      ...deps,
      store: new OwnerStore(deps.db),
      remote: this.#remote,
      queue: {
        of: (sessionId) => chat.turnsOf(sessionId),
        enqueue: (turn, onDisk) => chat.enqueue(turn, onDisk),
      },
    })
    this.#subscription = broadcast.on(TOPIC, {
      heard: (data, from) => this.#heard(data, from),
      missed: () => this.#missed(),
    })
  }

  /** Turns of other daemons that are followed here. */
  get followed(): number {
    return this.#remote.size
  }
  /** A turn of another daemon, with all that happens in it. */
  follow(turn: Turn): RemoteTurn {
    return this.#remote.follow(turn, turn.owner)
  }
  /**
   * An open turn of this daemon. One that another daemon accepted for it may be on record before this one has heard of
   * it. `undefined` when it has ended meanwhile, or goes on elsewhere.
   */
  async pickUp({ id, sessionId }: Turn): Promise<LiveTurn | undefined> {
    await this.owners.pickUp(sessionId)
    return this.#deps.chat.attach(id)
  }
  /** The turns of a session that wait or run, those at other daemons too, in its order. */
  async inSession(sessionId: string): Promise<readonly (LiveTurn | RemoteTurn)[]> {
    const open = await this.owners.inOrder(sessionId)
    return open.flatMap((turn) =>
      this.owners.isElsewhere(turn) ? this.follow(turn) : (this.#deps.chat.attach(turn.id) ?? []),
    )
  }

  /** What the messages of others may have left out. Called now and then, and when this daemon begins to drain. */
  async look(): Promise<void> {
    const { cluster, chat } = this.#deps
    this.#remote.look()
    this.tellWatched()
    if (cluster.isDraining) chat.releaseWaiting()
    await this.owners.giveUpUnused(cluster.isDraining ? 0 : UNUSED_LOOKS)
  }
  /** The others tell this daemon of the turns of the sessions that are followed here. */
  tellWatched(force = false): void {
    const { sessionIds } = this.#deps.sessionStream
    if (sessionIds.length > 0 || force) this.#send({ type: 'watched', sessionIds: [...sessionIds] })
  }
  /** A turn entered its session's queue: whoever follows the session elsewhere is told once it is on disk. */
  accepted({ id, agentId, sessionId, entryPoint }: LiveTurn, onDisk: Promise<unknown>): void {
    const watchers = this.#watchersOf(sessionId)
    if (watchers.length === 0) return
    const message: Message = { type: 'accepted', turn: { id, agentId, sessionId, entryPoint } }
    onDisk.then(
      () => {
        for (const to of watchers) this.#send(message, to)
      },
      () => undefined /* It was refused; its entry point reports that. */,
    )
  }
  /** For the followers of a session at other daemons. */
  show(sessionId: string, event: string, data: Record<string, unknown>): void {
    for (const to of this.#watchersOf(sessionId)) this.#send({ type: 'shown', sessionId, event, data }, to)
  }
  cancelAll(where: CancelledTurns): void {
    this.#send({ type: 'cancel-all', ...where })
  }
  /** A daemon is dead or left. */
  async ended(daemon: string): Promise<void> {
    this.#watched.delete(daemon)
    this.#sender.ended(daemon)
    await this.owners.recover()
    this.#remote.look()
  }

  /** At the start. What others left is taken over once this daemon listens: before that it may lack a plugin. */
  async recoverAll(): Promise<void> {
    await this.owners.recoverUnowned()
    if (this.#deps.isListening()) await this.owners.recover()
    this.#send({ type: 'joined' })
  }

  recoverLater(): void {
    this.#inBackground(() => this.owners.recover())
  }

  /** When nothing runs here any more. */
  async close(): Promise<void> {
    this.#subscription[Symbol.dispose]()
    this.#remote.close(
      new Refusal('service_unavailable', 'This daemon is stopping; another one goes on with the turn', {
        retryAfterSecs: 1,
      }),
    )
    await this.owners.handOver()
  }

  #watchersOf(sessionId: string): readonly string[] {
    return [...this.#watched].flatMap(([daemon, sessionIds]) => (sessionIds.has(sessionId) ? [daemon] : []))
  }
  #missed(): void {
    const { background, leaving, log, sessionStream } = this.#deps
    sessionStream.missed()
    this.tellWatched(true)
    this.#remote.look()
    background(async () => {
      try {
        await untilAnswered(() => this.owners.pickUpAll(), leaving)
        await this.owners.recover()
      } catch (error) {
        log.warn('turns for this daemon were not read; that is tried again', error)
      }
    })
  }
  #heard(data: unknown, from: string): void {
    const parsed = v.safeParse(Message, data)
    // Another version says what this one does not know.
    if (!parsed.success) return
    const message = parsed.output
    const { chat, cluster, sessionStream } = this.#deps
    switch (message.type) {
      case 'relayed':
        if (message.to === cluster.self) this.#pickUp(message.sessionId, message.turnId, from)
        break
      case 'follow':
        this.#sender.start(message.turnId, message.from, from)
        break
      case 'cancel':
        chat.attach(message.turnId)?.cancel()
        break
      case 'cancel-all':
        chat.cancelAll(message)
        break
      case 'joined':
        this.tellWatched()
        break
      case 'watched':
        if (message.sessionIds.length === 0) this.#watched.delete(from)
        else this.#watched.set(from, new Set(message.sessionIds))
        break
      case 'accepted':
        if (sessionStream.sessionIds.includes(message.turn.sessionId))
          sessionStream.accepted(this.#remote.follow(message.turn, from), Promise.resolve())
        break
      case 'shown':
        sessionStream.show(message.sessionId, message.event, message.data)
        break
      case 'left':
        this.#inBackground(() => this.owners.recover())
        break
      default:
        this.#remote.heard(message, from)
    }
  }
  #pickUp(sessionId: string, turnId: string, from: string): void {
    this.#inBackground(async () => {
      await untilAnswered(() => this.owners.pickUp(sessionId), this.#deps.leaving)
      this.#sender.start(turnId, 0, from)
    })
  }
  #inBackground(work: () => Promise<void>): void {
    const { background, log } = this.#deps
    background(async () => {
      try {
        await work()
      } catch (error) {
        // What is on disk is found by the next look.
        log.warn('a turn for this daemon was not taken up at once', error)
      }
    })
  }
  #send(message: Message, to?: string): void {
    this.#deps.broadcast.send(TOPIC, message, to)
  }
}

/** How often it is looked for what the messages of others may have left out. */
const LOOK_MS = 5_000
/** A session in which nothing has happened for so many looks is given up. */
const UNUSED_LOOKS = 2
/** How many looks there are between two searches for turns that nobody works on. */
const LOOKS = 3

export interface OpenedTurnsDeps extends Omit<SharedTurnsDeps, 'maxQueued' | 'loaded' | 'broadcast' | 'isListening'> {
  readonly services: Pick<ChatDeps['services'], 'broadcast' | 'daemon'>
  readonly config: Pick<ChatConfig, 'queue_length'>
  readonly jobs: Jobs
  readonly own: ChatDeps['own']
  readonly signal: AbortSignal
}

/** The shared turns of a plugin, until it unloads. */
export function openSharedTurns({ services, config, jobs, own, signal, ...deps }: OpenedTurnsDeps): SharedTurns {
  const shared = new SharedTurns({
    ...deps,
    broadcast: services.broadcast,
    maxQueued: config.queue_length,
    isListening: () => services.daemon.isListening,
    loaded: () => pluginsLoaded(services.daemon, 'chat', signal),
  })
  own('shared turns', () => shared.close())
  let looks = 0
  jobs.every('shared-turns', LOOK_MS, async () => {
    await shared.look()
    if (++looks % LOOKS === 0) await shared.owners.recover()
  })
  return shared
}
