import { currentActor, newId, untilAnswered } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import { randomUUID } from 'node:crypto'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { EntryPoint, Journal } from '../../journal/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { ChatConfig } from '../config.ts'
import type { Compactor } from '../context/compactor.ts'
import type { SharedTurns } from '../owners/open.ts'
import type { Incoming } from '../owners/session-owners.ts'
import type { AcceptedTurn, Chat, Compaction, TurnRequest } from '../contract.ts'
import { isAutomated, isOpen, queueFull, quietFor, toUserMessage } from './acceptance.ts'
import type { FailedTurns, FailedTurnsDeps } from './failed-turns.ts'
import { explain } from './failure.ts'
import { LiveTurn, toOptions, TurnStopped } from './live-turn.ts'
import type { TurnOptions } from './live-turn.ts'
import { chooseModel } from './model-choice.ts'
import type { TurnRecord } from './record.ts'
import { TEXT_ONLY } from './response-format.ts'
import type { TurnRunner } from './runner.ts'
import { AgentSemaphore, TurnQueue } from './turn-queue.ts'

export interface ChatServiceDeps {
  readonly config: ChatConfig
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly agents: Agents
  readonly sessions: Sessions
  readonly journal: Journal
  readonly record: TurnRecord
  readonly runner: Pick<TurnRunner, 'run'>
  readonly inference: Inference
  readonly audit: Audit
  readonly daemon: Pick<Daemon, 'keyGeneration'>
  /** Of the API key in force; `undefined` where no other daemon can be. */
  readonly keyMark: () => string | undefined
  readonly compactor: Pick<Compactor, 'compact'>
  /** Tools of a turn that ran, or may have, and that may have changed something. */
  readonly effectfulTools: (turnId: string) => Promise<readonly string[]>
  /** Aborts when the plugin unloads. */
  readonly signal: AbortSignal
  /** Runs work that unloading waits for. It never rejects. */
  readonly background: (work: () => Promise<void>) => void
  /** Tells the readers of a session. */
  /** Where other daemons are on the database. */
  readonly shared: () => SharedTurns | undefined
  readonly sessionStream: FailedTurnsDeps['sessionStream'] & {
    /** A turn entered its session's queue. */
    accepted(turn: LiveTurn, onDisk: Promise<unknown>): void
  }
}

/** Entry points that answer later. Their turns resume after a restart, because no client lost its connection. */
const RESUMABLE: ReadonlySet<EntryPoint> = new Set<EntryPoint>([
  'channel',
  'schedule',
  'trigger',
  'task',
  'workflow',
  'hook',
  'a2a',
])

/**
 * How many turns an agent may run at a time. A turn that another agent waits for is exempt: two agents that ask each
 * other would deadlock.
 */
function maxConcurrentTurns(agent: Agent | undefined, entryPoint: EntryPoint): number | undefined {
  if (entryPoint === 'agent') return undefined
  // Of an agent that cannot be read the limit is not known: one at a time passes none.
  return agent ? agent.manifest.max_concurrent_invocations : 1
}

/** Accepts turns, queues them by session, and knows those that wait or run. */
export class ChatService implements Chat {
  readonly #deps: ChatServiceDeps
  readonly #queue: TurnQueue<LiveTurn>
  readonly #semaphore = new AgentSemaphore()
  /** Turns that wait for the semaphore of their agent. */
  readonly #held = new Set<LiveTurn>()
  #failedTurns: Promise<FailedTurns> | undefined
  constructor(deps: ChatServiceDeps) {
    this.#deps = deps
    this.#queue = new TurnQueue((turn, next) => this.#run(turn, next))
  }

  /** `also`: statements for the same batch. */
  async accept(request: TurnRequest, also: readonly Statement[] = []): Promise<AcceptedTurn> {
    const { db, record, agents, config } = this.#deps
    const { entryPoint } = request
    const blocks = toUserMessage(request, config)
    const agent = await agents.requireRunning(request.agentId)
    await this.#checkQuietHours(agent, entryPoint)
    if (request.responseFormat) await this.#checkFormat(agent)
    const fresh = isAutomated(entryPoint) && agent.manifest.session_mode === 'new'
    const sessionId = request.sessionId ?? (fresh ? randomUUID() : agent.sessionId)
    if (sessionId !== agent.sessionId) await this.#checkOwner(sessionId, agent.id)
    const shared = this.#deps.shared()
    if (!shared) this.#checkQueueLength(sessionId)
    const parent = request.within === undefined ? undefined : this.attach(request.within)
    const { credential, keyMark, user, ...sender } = this.#senderOf(parent)
    const turn = new LiveTurn({
      id: request.id ?? newId(),
      agentId: agent.id,
      sessionId,
      entryPoint,
      options: toOptions({ hops: parent?.options.hops, user, ...request, credential, keyMark }),
      resumed: false,
      resumable: request.resumable ?? RESUMABLE.has(entryPoint),
      onBehalf: request.onBehalf,
      toolCalls: parent?.toolCalls,
      ...sender,
    })
    const startsAlone = maxConcurrentTurns(agent, entryPoint) === undefined
    if (shared) return this.#acceptShared(shared, { turn, blocks, also, startsAlone })
    // Nothing is awaited between entering the queue and starting the batch, so the order on disk is the order of the
    // queue.
    const starts = this.#queue.length(sessionId) === 0 && startsAlone
    const onDisk = db.batch([...record.accepted(turn, blocks, starts ? 'running' : 'queued'), ...also])
    this.enqueue(turn, onDisk)
    await onDisk
    return turn
  }

  /** The same message may have been accepted by another daemon under the same id: then its turn is followed. */
  async #acceptShared(shared: SharedTurns, incoming: Incoming): Promise<AcceptedTurn> {
    try {
      return await shared.owners.accept(incoming)
    } catch (error) {
      const { id, agentId } = incoming.turn
      const known = await this.#deps.journal.find(id)
      if (known?.agentId !== agentId) throw error
      return this.attach(id) ?? shared.follow(known)
    }
  }

  /** Who sends a message now, or sent that of the turn for which another agent sends it. */
  #senderOf(
    parent: LiveTurn | undefined,
  ): Pick<LiveTurn, 'sender' | 'keyGeneration'> & Pick<TurnOptions, 'credential' | 'keyMark' | 'user'> {
    const sender = currentActor()
    // Whoever holds the API key, a paired device or a local program without a key speaks for the owner. An agent that no
    // turn waits for speaks for itself.
    const isNamed = sender?.kind === 'user' || sender?.kind === 'agent'
    const speaks = isNamed ? (sender.subject ?? `${sender.kind}:${sender.id}`) : undefined
    const user = parent ? parent.options.user : speaks
    const keyGeneration = sender?.kind === 'operator' ? this.#deps.daemon.keyGeneration() : parent?.keyGeneration
    const keyMark = sender?.kind === 'operator' ? this.#deps.keyMark() : parent?.options.keyMark
    return {
      sender,
      keyGeneration,
      ...omitUndefined({ credential: sender?.credential ?? parent?.options.credential, keyMark, user }),
    }
  }

  /** Throws when the agent's model cannot answer in a format, while nothing is written yet. */
  async #checkFormat(agent: Agent): Promise<void> {
    let provider: string
    try {
      provider = (await chooseModel(this.#deps.inference, agent)).model.provider
    } catch (error) {
      // The turn reports that there is no model, when it runs.
      if (explain(error) === undefined) throw error
      return
    }
    if (provider === 'builtin') throw new Refusal('invalid_request', TEXT_ONLY)
  }
  /** Throws when an automated turn comes in the agent's quiet hours. The sender may try again when they end. */
  async #checkQuietHours({ id, name, manifest }: Agent, entryPoint: EntryPoint): Promise<void> {
    const { quiet_hours: hours } = manifest.autonomous
    const secs = isAutomated(entryPoint) ? quietFor(hours, new Date()) : 0
    if (secs === 0) return
    await this.#deps.audit.write({
      event: 'agent_message',
      agentId: id,
      details: `a turn by ${entryPoint} was refused in the quiet hours ${hours}`,
    })
    throw new Refusal('service_unavailable', `Agent "${name}" has quiet hours (${hours})`, {
      retryAfterSecs: secs,
      details: { quiet_hours: hours },
    })
  }
  async #checkOwner(sessionId: string, agentId: string): Promise<void> {
    const session = await this.#deps.sessions.find(sessionId)
    if (session && session.agentId !== agentId)
      throw new Refusal('session_not_found', `No session ${sessionId} of this agent`)
  }
  #checkQueueLength(sessionId: string): void {
    const { queue_length: max } = this.#deps.config
    if (this.#queue.length(sessionId) >= max) throw queueFull(max)
  }

  /** Puts a turn that is on disk, or about to be, into its session's queue. */
  enqueue(turn: LiveTurn, onDisk: Promise<unknown>): void {
    turn.onDisk = onDisk
    this.#deps.background(() => this.#queue.add(turn.sessionId, turn, onDisk))
    this.#deps.sessionStream.accepted(turn, onDisk)
    this.#deps.shared()?.accepted(turn, onDisk)
  }

  /** Runs the next turn of a session when its agent may run one more. */
  async #run(turn: LiveTurn, next: () => LiveTurn | undefined): Promise<void> {
    const { agents, runner, record } = this.#deps
    // What is wrong is thrown again where it is recorded.
    const agent = await untilAnswered(() => agents.find(turn.agentId), turn.signal).catch(() => undefined)
    const limit = maxConcurrentTurns(agent, turn.entryPoint)
    if (limit === undefined) return runner.run(turn, next, agent)
    let acquired = false
    this.#held.add(turn)
    try {
      await this.#semaphore.acquire(turn.agentId, limit, turn.signal)
      acquired = true
      if (!turn.waiting) await record.commit(turn, [record.running(turn.id)])
    } catch {
      // The turn was stopped while it waited, or the disk fails: the runner fails in the same way and records it.
    }
    this.#held.delete(turn)
    try {
      // The turn that follows has to acquire its own slot.
      await runner.run(turn, () => undefined)
    } finally {
      if (acquired) this.#semaphore.release(turn.agentId)
    }
  }

  /** Number of turns that wait or run. */
  get open(): number {
    return this.#queue.total
  }
  /** Number of sessions with such turns. */
  get activeSessions(): number {
    return this.#queue.size
  }

  /** Whether a turn of the session waits or runs. */
  async busy(sessionId: string): Promise<boolean> {
    return this.#queue.length(sessionId) > 0 || (await this.#deps.shared()?.owners.isBusy(sessionId)) === true
  }
  async stop(agentId: string, sessionId?: string): Promise<boolean> {
    let found = false
    for (const turn of this.#queue.heads()) {
      if (!belongsTo(turn, agentId, sessionId)) continue
      turn.cancel()
      found = true
    }
    const shared = this.#deps.shared()
    for (const turn of (await shared?.owners.runningElsewhere(agentId, sessionId)) ?? []) {
      shared?.follow(turn).cancel()
      found = true
    }
    return found
  }
  cancel(turnId: string): void {
    const here = this.attach(turnId)
    const shared = this.#deps.shared()
    if (here || !shared) return here?.cancel()
    this.#deps.background(async () => (await this.follow(turnId))?.cancel())
  }
  async follow(turnId: string): Promise<AcceptedTurn | undefined> {
    const shared = this.#deps.shared()
    const turn = shared && (await this.#deps.journal.find(turnId))
    if (!turn || !isOpen(turn)) return undefined
    return shared.owners.isElsewhere(turn) ? shared.follow(turn) : shared.pickUp(turn)
  }
  /** Turns of a session that wait or run, the running one first. */
  turnsOf(sessionId: string): readonly LiveTurn[] {
    return this.#queue.of(sessionId)
  }
  /** The turns that this one waits for, the first one first. */
  ahead(turnId: string): readonly string[] {
    const turn = this.attach(turnId)
    if (!turn) return []
    const queue = this.#queue.of(turn.sessionId)
    const ahead = queue.slice(0, queue.indexOf(turn)).map(({ id }) => id)
    if (!this.#held.has(turn)) return ahead
    // It is the first of its session, and waits for other sessions of its agent.
    for (const head of this.#queue.heads())
      if (head.agentId === turn.agentId && !this.#held.has(head)) ahead.push(head.id)
    return ahead
  }
  attach(turnId: string): LiveTurn | undefined {
    for (const turn of this.#queue.items()) if (turn.id === turnId) return turn
    return undefined
  }
  /**
   * Cancels the waiting and running turns of a session or an agent that is gone. `forget`: its messages are deleted
   * too.
   */
  cancelAll(where: { readonly agentId: string; readonly sessionId?: string; readonly forget?: boolean }): void {
    for (const turn of this.#queue.items()) {
      if (!belongsTo(turn, where.agentId, where.sessionId)) continue
      turn.forgotten ||= where.forget ?? false
      turn.cancel()
    }
  }
  /**
   * Ends the turns that wait for a person, and those queued behind them. They resume when the plugin is loaded again.
   */
  releaseWaiting(): void {
    const sessions = new Set([...this.#queue.heads()].filter(({ waiting }) => waiting).map((turn) => turn.sessionId))
    for (const turn of this.#queue.items()) if (sessions.has(turn.sessionId)) turn.stop('unload')
  }
  /** Ends every turn in this process. */
  stopAll(by: TurnStopped['by']): void {
    for (const turn of this.#queue.items()) turn.stop(by)
  }

  async retry(turnId: string, entryPoint: EntryPoint, id?: string): Promise<AcceptedTurn> {
    return (await this.#openFailedTurns()).retry(turnId, entryPoint, id)
  }
  async drop(turnId: string): Promise<{ readonly agentId: string; readonly sessionId: string }> {
    return (await this.#openFailedTurns()).drop(turnId)
  }
  /** Loaded by the first turn that is repeated or dropped. */
  #openFailedTurns(): Promise<FailedTurns> {
    return (this.#failedTurns ??= import('./failed-turns.ts').then(
      (module) => new module.FailedTurns({ ...this.#deps, accept: (request, also) => this.accept(request, also) }),
    ))
  }

  async compact(agentId: string, sessionId?: string): Promise<Compaction> {
    const { agents, compactor, inference, signal } = this.#deps
    const agent = await agents.require(agentId)
    const target = sessionId ?? agent.sessionId
    const { model } = await chooseModel(inference, agent)
    const [elsewhere] = (await this.#deps.shared()?.owners.inOrder(target)) ?? []
    const before = this.#queue.running(target)?.id ?? elsewhere?.id
    try {
      return await compactor.compact({ agent, sessionId: target, model, before, signal, reason: 'request' })
    } catch (error) {
      // It may have joined the compaction of a turn that was cancelled, or this plugin is being replaced.
      if (error instanceof TurnStopped || signal.aborted)
        throw new Refusal('service_unavailable', 'The summary was not finished; everything is as it was', {
          retryAfterSecs: 1,
          cause: error,
        })
      throw error
    }
  }
  async undoCompaction(agentId: string, sessionId?: string): Promise<number> {
    const { agents, sessions } = this.#deps
    const target = sessionId ?? (await agents.require(agentId)).sessionId
    const undone = await sessions.restore(target)
    if (!undone) return 0
    return undone.messageCount - ((await sessions.summary(target))?.messageCount ?? 0)
  }
}

function belongsTo(turn: LiveTurn, agentId: string, sessionId: string | undefined): boolean {
  return turn.agentId === agentId && (sessionId === undefined || turn.sessionId === sessionId)
}
