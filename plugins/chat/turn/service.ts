import { v7 } from 'uuid'
import { randomUUID } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { EntryPoint, Journal, Turn } from '../../journal/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { Block, Label, Message, Sessions } from '../../sessions/contract.ts'
import { chooseModel, TEXT_ONLY } from './model-call.ts'
import type { Compactor } from '../context/compactor.ts'
import type { ChatConfig } from '../config.ts'
import type { AcceptedTurn, Chat, Compaction, TurnRequest } from '../contract.ts'
import { explain } from './failure.ts'
import { TurnQueue } from './turn-queue.ts'
import { LiveTurn, Stopped, toOptions } from './live-turn.ts'
import { readOptions } from './options.ts'
import { holdsPersonalData } from '../safety/personal-data.ts'
import { AgentSemaphore } from './agent-semaphore.ts'
import { isAutomated, quietFor } from './quiet-hours.ts'
import type { TurnRecord } from './record.ts'
import type { TurnRunner } from './runner.ts'

export interface ChatServiceDeps {
  readonly config: ChatConfig
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly agents: Agents
  readonly sessions: Sessions
  readonly journal: Journal
  readonly record: TurnRecord
  readonly runner: TurnRunner
  readonly inference: Inference
  readonly audit: Audit
  readonly compactor: Compactor
  /** Tools of a turn that ran, or may have, and that may have changed something. */
  readonly effects: (turnId: string) => Promise<readonly string[]>
  /** Aborts when the plugin unloads. */
  readonly signal: AbortSignal
  /** Runs work that unloading waits for. It never rejects. */
  readonly background: (work: () => Promise<void>) => void
  /** Told of every turn that takes a place in its session's line. */
  readonly accepted?: (turn: LiveTurn, onDisk: Promise<unknown>) => void
}

/** Entry points that answer later, so that nobody's connection is lost with the process. */
const later: ReadonlySet<EntryPoint> = new Set<EntryPoint>([
  'channel',
  'schedule',
  'trigger',
  'workflow',
  'hook',
  'a2a',
])

/** Whose words come in at an entry point. A schedule's or a workflow's are the operator's own. */
const entryPointLabels: Readonly<Partial<Record<EntryPoint, readonly Label[]>>> = {
  rest: ['UserInput'],
  sse: ['UserInput'],
  websocket: ['UserInput'],
  openai: ['UserInput'],
  cli: ['UserInput'],
  channel: ['UserInput'],
  hook: ['UserInput'],
  trigger: ['UserInput'],
  agent: ['UntrustedAgent'],
  a2a: ['UntrustedAgent'],
}

/** How many turns the agent may run at a time. What another agent waits for is not held back: two that ask each other would wait for ever. */
function maxConcurrentTurns({ manifest }: Agent, entryPoint: EntryPoint): number | undefined {
  return entryPoint === 'agent' ? undefined : manifest.max_concurrent_invocations
}

export class ChatService implements Chat {
  readonly #deps: ChatServiceDeps
  readonly #queue: TurnQueue<LiveTurn>
  readonly #semaphore = new AgentSemaphore()
  /** Turns that wait for a place of their agent. */
  readonly #held = new Set<LiveTurn>()
  /** Turns that are being retried or dropped. */
  readonly #settling = new Set<string>()
  constructor(deps: ChatServiceDeps) {
    this.#deps = deps
    this.#queue = new TurnQueue((turn, next) => this.#run(turn, next))
  }

  /** Turns that wait or run. */
  get open(): number {
    return this.#queue.total
  }
  /** Sessions with a turn that waits or runs. */
  get activeSessions(): number {
    return this.#queue.size
  }

  busy(sessionId: string): boolean {
    return this.#queue.length(sessionId) > 0
  }

  accept(request: TurnRequest): Promise<AcceptedTurn> {
    return this.#accept(request)
  }
  /** `also`: what is written with it. */
  async #accept(request: TurnRequest, also: readonly Statement[] = []): Promise<AcceptedTurn> {
    const { db, record, agents } = this.#deps
    const blocks = this.#blocks(request)
    const agent = await agents.requireRunning(request.agentId)
    await this.#awake(agent, request.entryPoint)
    if (request.responseFormat) await this.#checkForm(agent)
    const fresh = isAutomated(request.entryPoint) && agent.manifest.session_mode === 'new'
    const sessionId = request.sessionId ?? (fresh ? randomUUID() : agent.sessionId)
    if (sessionId !== agent.sessionId) await this.#own(sessionId, agent.id)
    this.#room(sessionId)
    const options = toOptions(request)
    const resumable = later.has(request.entryPoint)
    const turn = new LiveTurn({
      id: request.id ?? v7(),
      agentId: agent.id,
      sessionId,
      entryPoint: request.entryPoint,
      options,
      resumed: false,
      resumable,
      tally: request.within === undefined ? undefined : this.#find(request.within)?.tally,
    })
    // Nothing is awaited between taking a place in line and handing in the batch: the order on disk is the order in line.
    const starts = this.#queue.length(sessionId) === 0 && maxConcurrentTurns(agent, request.entryPoint) === undefined
    const accepted = db.batch([
      ...record.accepted(turn, blocks, JSON.stringify(options), resumable ? 'resume' : 'interrupt', starts),
      ...also,
    ])
    this.enqueue(turn, accepted)
    await accepted
    return turn
  }

  async retry(turnId: string, entryPoint: EntryPoint): Promise<AcceptedTurn> {
    return this.#settle(turnId, 'retried', async (turn, message, statements) => {
      const said = message.blocks.flatMap((block) => (block.type === 'text' ? [block] : []))
      return this.#accept(
        {
          ...readOptions(turn.options),
          agentId: turn.agentId,
          sessionId: turn.sessionId,
          entryPoint,
          text: said.map(({ text }) => text).join('\n\n'),
          images: message.blocks.filter((block) => block.type === 'image'),
          labels: said.flatMap(({ labels = [] }) => labels),
        },
        statements,
      )
    })
  }
  async drop(turnId: string): Promise<{ readonly agentId: string; readonly sessionId: string }> {
    return this.#settle(turnId, 'dropped', async (turn, _message, statements) => {
      await this.#deps.db.batch(statements)
      return turn
    })
  }
  /** One at a time for a turn, so that a message is asked again once. */
  async #settle<T>(
    turnId: string,
    how: 'retried' | 'dropped',
    settle: (turn: Turn, message: Message, statements: readonly Statement[]) => Promise<T>,
  ): Promise<T> {
    const { journal, sessions, record, effects } = this.#deps
    const settled = (): Refusal => new Refusal('conflict', `Turn ${turnId} was retried or dropped already`)
    // Nothing is awaited before the turn is taken, or two requests could both find it free.
    if (this.#settling.has(turnId)) throw settled()
    this.#settling.add(turnId)
    try {
      const turn = await journal.find(turnId)
      const [message] = turn ? await sessions.turn(turn.sessionId, turnId) : []
      if (!turn || message?.role !== 'user') throw new Refusal('turn_not_found', `No turn ${turnId} with a message`)
      if (turn.state !== 'failed' && turn.state !== 'interrupted')
        throw new Refusal('conflict', `Turn ${turnId} did not fail: it is ${turn.state}`)
      if (await sessions.isHidden(turn.sessionId, turnId)) throw settled()
      // What the tools of a failed turn did was noted when it failed.
      const done = turn.state === 'interrupted' ? await effects(turnId) : []
      return await settle(turn, message, record.hidden(turn, how, done))
    } finally {
      this.#settling.delete(turnId)
    }
  }

  /** Runs the next turn of a session, when its agent may run one more. */
  async #run(turn: LiveTurn, next: () => LiveTurn | undefined): Promise<void> {
    const { agents, runner, db, record } = this.#deps
    const agent = await agents.find(turn.agentId)
    const most = agent && maxConcurrentTurns(agent, turn.entryPoint)
    if (most === undefined) return runner.run(turn, next)
    let placed = false
    this.#held.add(turn)
    try {
      await this.#semaphore.take(turn.agentId, most, turn.signal)
      placed = true
      if (!turn.waiting) await db.batch([record.running(turn.id)])
    } catch {
      // It was stopped while it waited, or nothing can be written: the runner meets the same, and says so as of any other turn.
    }
    this.#held.delete(turn)
    try {
      // Whether the one that follows may begin is found out when it is its turn.
      await runner.run(turn, () => undefined)
    } finally {
      if (placed) this.#semaphore.leave(turn.agentId)
    }
  }

  /** Puts a turn that is on disk, or about to be, into its session's line. */
  enqueue(turn: LiveTurn, ready: Promise<unknown>): void {
    this.#deps.background(() => this.#queue.add(turn.sessionId, turn, ready))
    this.#deps.accepted?.(turn, ready)
  }

  stop(agentId: string, sessionId?: string): boolean {
    let found = false
    for (const turn of this.#queue.heads()) {
      if (turn.agentId !== agentId || (sessionId !== undefined && turn.sessionId !== sessionId)) continue
      turn.cancel()
      found = true
    }
    return found
  }
  /** Turns of a session that wait or run, the running one first. */
  turnsOf(sessionId: string): readonly LiveTurn[] {
    return this.#queue.of(sessionId)
  }
  /** The turns that this one waits for, the first one first. */
  ahead(turnId: string): readonly string[] {
    const turn = this.#find(turnId)
    if (!turn) return []
    const before: string[] = []
    for (const each of this.#queue.items()) {
      if (each === turn) break
      if (each.sessionId === turn.sessionId) before.push(each.id)
    }
    if (!this.#held.has(turn)) return before
    // The first of its line, but its agent answers as many others as it may.
    for (const each of this.#queue.heads())
      if (each.agentId === turn.agentId && !this.#held.has(each)) before.push(each.id)
    return before
  }
  attach(turnId: string): LiveTurn | undefined {
    return this.#find(turnId)
  }
  #find(turnId: string): LiveTurn | undefined {
    for (const turn of this.#queue.items()) if (turn.id === turnId) return turn
    return undefined
  }
  /** Ends what waits as well as what runs, where a session or an agent is gone. `forget`: its messages too, so what was said so far is not kept. */
  abandon({
    agentId,
    sessionId,
    forget = false,
  }: {
    readonly agentId: string
    readonly sessionId?: string
    readonly forget?: boolean
  }): void {
    for (const turn of this.#queue.items()) {
      if (turn.agentId !== agentId || (sessionId !== undefined && turn.sessionId !== sessionId)) continue
      turn.forgotten ||= forget
      turn.cancel()
    }
  }
  /** Lets go of the turns that wait for a person: they are on disk and go on when the plugin is back. What stands behind them cannot begin before. */
  releaseWaiting(): void {
    const held = new Set([...this.#queue.heads()].filter((turn) => turn.waiting).map((turn) => turn.sessionId))
    for (const turn of this.#queue.items()) if (held.has(turn.sessionId)) turn.stop('unload')
  }
  /** Ends everything in this process. */
  end(by: Stopped['by']): void {
    for (const turn of this.#queue.items()) turn.stop(by)
  }

  async compact(agentId: string, sessionId?: string): Promise<Compaction> {
    const { agents, compactor, inference, signal } = this.#deps
    const agent = await agents.require(agentId)
    const of = sessionId ?? agent.sessionId
    const { model } = await chooseModel(inference, agent)
    try {
      return await compactor.compact({
        agent,
        sessionId: of,
        model,
        before: this.#queue.running(of)?.id,
        signal,
        because: 'request',
      })
    } catch (error) {
      // It may have been a turn's, which was cancelled, or this plugin is being replaced.
      if (error instanceof Stopped || signal.aborted)
        throw new Refusal('service_unavailable', 'The summary was not finished; everything is as it was', {
          retryAfterSecs: 1,
          cause: error,
        })
      throw error
    }
  }
  async undoCompaction(agentId: string, sessionId?: string): Promise<number> {
    const { agents, sessions } = this.#deps
    const of = sessionId ?? (await agents.require(agentId)).sessionId
    const before = await sessions.restore(of)
    if (!before) return 0
    return before.messageCount - ((await sessions.summary(of))?.messageCount ?? 0)
  }

  /** Throws when the answer can have no form, while nothing is written yet. */
  async #checkForm(agent: Agent): Promise<void> {
    let provider: string
    try {
      provider = (await chooseModel(this.#deps.inference, agent)).model.provider
    } catch (error) {
      // That no model can be had now is told by the turn, when it is its turn.
      if (explain(error) === undefined) throw error
      return
    }
    if (provider === 'builtin') throw new Refusal('invalid_request', TEXT_ONLY)
  }
  /** Throws when a clock or an event wants something from an agent in its quiet hours. Whoever sent it may try again when they end. */
  async #awake({ id, name, manifest }: Agent, entryPoint: EntryPoint): Promise<void> {
    const secs = isAutomated(entryPoint) ? quietFor(manifest.autonomous.quiet_hours, new Date()) : 0
    if (secs === 0) return
    await this.#deps.audit.write({
      event: 'agent_message',
      agentId: id,
      details: `a turn by ${entryPoint} was refused in the quiet hours ${manifest.autonomous.quiet_hours}`,
    })
    throw new Refusal('service_unavailable', `Agent "${name}" has quiet hours (${manifest.autonomous.quiet_hours})`, {
      retryAfterSecs: secs,
      details: { quiet_hours: manifest.autonomous.quiet_hours },
    })
  }
  #blocks({ text, images = [], entryPoint, labels = [] }: TurnRequest): Block[] {
    const { message_bytes: bytes, message_chars: chars, images_per_message: most } = this.#deps.config
    if (text.trim() === '' && images.length === 0) throw new Refusal('invalid_request', 'message: must not be empty')
    if (text.length > chars)
      throw new Refusal(
        'payload_too_large',
        `The message is longer than ${chars} characters (plugins.chat.message_chars)`,
      )
    if (text.length * 3 > bytes && Buffer.byteLength(text) > bytes)
      throw new Refusal('payload_too_large', `The message is larger than ${bytes} bytes (plugins.chat.message_bytes)`)
    if (images.length > most)
      throw new Refusal(
        'payload_too_large',
        `The message has more than ${most} images (plugins.chat.images_per_message)`,
      )
    const carried = [
      ...new Set<Label>([
        ...(entryPointLabels[entryPoint] ?? []),
        ...labels,
        ...(holdsPersonalData(text, this.#deps.config.personal_data) ? (['Pii'] as const) : []),
      ]),
    ]
    // An image has no place for labels; an empty text beside it carries them.
    const blocks: Block[] =
      text === '' && carried.length === 0
        ? []
        : [{ type: 'text', text, ...(carried.length > 0 && { labels: carried }) }]
    for (const image of images) blocks.push({ type: 'image', ...image })
    return blocks
  }
  async #own(sessionId: string, agentId: string): Promise<void> {
    const session = await this.#deps.sessions.find(sessionId)
    if (session && session.agentId !== agentId)
      throw new Refusal('session_not_found', `No session ${sessionId} of this agent`)
  }
  #room(sessionId: string): void {
    const { queue_length: most } = this.#deps.config
    if (this.#queue.length(sessionId) < most) return
    throw new Refusal(
      'rate_limit',
      `This session has ${most} messages waiting already (plugins.chat.queue_length); send more when some are answered`,
      { retryAfterSecs: 5 },
    )
  }
}
