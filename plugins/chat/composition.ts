import type { Logger } from 'svc/sdk'
import type { Daemon } from 'svc/internal'
import type { Hooks, Metrics, PluginContext, PluginDatabase, Statement, Tools } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Budgets } from '../budgets/contract.ts'
import type { Journal } from '../journal/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Screening } from '../screening/contract.ts'
import type { Sessions } from '../sessions/contract.ts'
import type { UsageLedger } from '../usage/contract.ts'
import { Compactor } from './context/compactor.ts'
import type { ChatConfig } from './config.ts'
import { Pace } from './safety/tool-call-rate.ts'
import { TurnRecord } from './turn/record.ts'
import { markFailed } from './turn/mark-failed.ts'
import { recover } from './turn/recover.ts'
import { AgentListFeed } from './entry/agent-list-feed.ts'
import { SessionStream } from './entry/session-stream.ts'
import { TurnRunner } from './turn/runner.ts'
import { ChatService } from './turn/service.ts'
import { UpkeepStore } from './store.ts'
import { BudgetGate } from './turn/budget-gate.ts'

export interface ChatDeps {
  readonly config: ChatConfig
  readonly db: PluginDatabase
  readonly hooks: Hooks
  readonly tools: Tools
  readonly log: Logger
  readonly metrics: Metrics
  readonly signal: AbortSignal
  readonly leaving: AbortSignal
  readonly run: PluginContext<ChatConfig, {}, {}>['run']
  readonly own: PluginContext<ChatConfig, {}, {}>['own']
  readonly usage: () => UsageLedger | undefined
  readonly budgets: () => Budgets | undefined
  readonly services: {
    readonly agents: Agents
    readonly sessions: Sessions
    readonly journal: Journal
    readonly audit: Audit
    readonly inference: Inference
    readonly daemon: Daemon
    readonly screening: Screening
  }
}
const SETTLE_MS = 50
/** Agents that are told apart in the metrics. */
const MOST_AGENTS = 1000

/** Puts the parts of the plugin together. */
export function composeChat({
  config,
  db,
  hooks,
  tools,
  log,
  metrics,
  signal,
  leaving,
  run,
  own,
  usage,
  budgets,
  services,
}: ChatDeps) {
  const { agents, sessions, journal, audit, inference, daemon } = services
  const onDefect = (error: unknown, turnId?: string): void => {
    log.error(`a turn failed by a defect${turnId === undefined ? '' : ` (${turnId})`}`, error)
  }
  const background = (work: () => Promise<void>): void => {
    run(work).catch((error: unknown) => onDefect(error))
  }
  const now = (): string => new Date().toISOString()
  const commit = (statements: readonly Statement[]): Promise<unknown> => db.batch(statements)
  const effects = async (turnId: string): Promise<readonly string[]> =>
    (await journal.effects(turnId)).flatMap(({ kind, state, name }) =>
      kind === 'tool' && state !== 'failed' && tools.find(name)?.risk !== 'read' ? [name] : [],
    )
  const budgetGate = new BudgetGate(hooks, budgets)
  const record = new TurnRecord({ sessions, journal, audit, usage, now, commit })
  const compactor = new Compactor({ sessions, inference, record, budgetGate, commit, config: config.compaction, now })
  const pace = new Pace(() => Date.now())
  const told = new Set<string>()
  const withheld = metrics.counter(
    'svc_chat_withheld_total',
    'Calls of tools that were refused for what their arguments may carry, by agent',
  )
  const runner = new TurnRunner({
    db,
    agents,
    sessions,
    inference,
    tools,
    hooks,
    record,
    background,
    onDefect,
    log,
    compactor,
    budgetGate,
    pace,
    effects: (turnId) => journal.effects(turnId),
    personalData: config.personal_data,
    withheld({ id }, label, tool) {
      // A scrape must not grow with every agent there ever was.
      if (told.size < MOST_AGENTS) told.add(id)
      withheld.add(1, { agent: told.has(id) ? id : '(others)', label, tool })
    },
    waitingAfterMs: config.waiting_after_ms,
    screening: { policy: config.screening, service: services.screening },
    historyMessages: config.history_messages,
    turnMs: config.turn_ms,
    loaded: whenLoaded,
    waits: () => {
      if (leaving.aborted) chat.releaseWaiting()
    },
    limits: {
      maxIterations: config.max_iterations,
      toolCalls: config.tool_calls_per_turn,
      reasoningChars: config.reasoning_chars,
    },
  })
  const feed = new SessionStream({
    turns: (sessionId) => chat.turnsOf(sessionId),
    message: async ({ sessionId, id }) => (await sessions.turn(sessionId, id)).find(({ role }) => role === 'user'),
    most: config.session_followers,
  })
  const chat = new ChatService({
    config,
    db,
    agents,
    sessions,
    journal,
    inference,
    audit,
    record,
    runner,
    compactor,
    background,
    effects,
    signal,
    accepted: (turn, onDisk) => feed.accepted(turn, onDisk),
  })
  const agentListFeed = new AgentListFeed({ agents, firstMs: config.agents_updated_first_ms, failed: onDefect })
  own('agentListFeed', () => agentListFeed.end())
  const unload = (): void => chat.end('unload')
  const releaseWaiting = (): void => chat.releaseWaiting()
  leaving.addEventListener('abort', releaseWaiting, { once: true })
  signal.addEventListener('abort', unload, { once: true })
  own('turns', () => {
    leaving.removeEventListener('abort', releaseWaiting)
    signal.removeEventListener('abort', unload)
  })

  // Tools and providers of other plugins may load after this one, and a turn that goes on without them would go wrong. The turns
  // stand in line already, so that what is sent meanwhile comes after them.
  function whenLoaded(until: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setInterval(() => {
      if (!daemon.plugins().some(({ name, state }) => state === 'loading' && name !== 'chat')) resolve()
    }, SETTLE_MS).unref()
    const ended = AbortSignal.any([until, signal])
    const leave = (): void => resolve()
    ended.addEventListener('abort', leave, { once: true })
    if (ended.aborted) leave()
    return promise.finally(() => {
      clearInterval(timer)
      ended.removeEventListener('abort', leave)
    })
  }

  return {
    chat,
    feed,
    agentListFeed,
    background,
    onDefect,
    pace,
    /** Marks what an earlier process left open, and goes on with what can go on. */
    async resumeTurns(): Promise<void> {
      await markFailed({ db, upkeep: new UpkeepStore(db), journal, sessions, record, effects })
      const turns = await recover({ db, journal, sessions, record })
      if (turns.length === 0) return
      const loaded = whenLoaded(signal)
      for (const turn of turns) chat.enqueue(turn, loaded)
    },
  }
}
