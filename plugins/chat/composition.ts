import { pluginsLoaded } from 'svc/internal'
import type { Broadcast, Daemon, DatabaseSnapshots } from 'svc/internal'
import type { Hooks, Logger, Metrics, PluginContext, PluginDatabase, Recovery, Statement, Tools } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Budgets } from '../budgets/contract.ts'
import type { Catalog } from '../catalog/contract.ts'
import type { Cluster } from '../cluster/contract.ts'
import type { Journal } from '../journal/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Screening } from '../screening/contract.ts'
import type { Sessions } from '../sessions/contract.ts'
import type { UsageLedger } from '../usage/contract.ts'
import type { ChatConfig } from './config.ts'
import type { ToolCalls, TurnResult } from './contract.ts'
import type { Compactor, CompactorDeps } from './context/compactor.ts'
import { SessionStream } from './entry/session-stream.ts'
import { AgentListFeed } from './entry/socket-feeds.ts'
import { ToolCallRate } from './safety/tool-call-rate.ts'
import type { SharedTurns } from './owners/open.ts'
import { FAILED_TURNS_MARKED, UpkeepStore } from './store.ts'
import type { LiveTurn } from './turn/live-turn.ts'
import { TurnRecord } from './turn/record.ts'
import type { TurnRunner, TurnRunnerDeps } from './turn/runner.ts'
import type { ToolCallServiceDeps } from './turn/tool-calls.ts'
import { ChatService } from './turn/service.ts'

type Context = PluginContext<ChatConfig, {}, {}>
export interface ChatDeps {
  readonly config: ChatConfig
  readonly db: PluginDatabase
  readonly hooks: Hooks
  readonly tools: Tools
  readonly log: Logger
  readonly metrics: Metrics
  readonly signal: AbortSignal
  readonly leaving: AbortSignal
  readonly run: Context['run']
  readonly own: Context['own']
  readonly jobs: Context['jobs']
  readonly usage: () => UsageLedger | undefined
  readonly budgets: () => Budgets | undefined
  readonly catalog: () => Catalog | undefined
  readonly services: {
    readonly agents: Agents
    readonly sessions: Sessions
    readonly journal: Journal
    readonly audit: Audit
    readonly inference: Inference
    readonly broadcast: Broadcast
    readonly cluster: Cluster
    readonly daemon: Daemon
    readonly snapshots: DatabaseSnapshots
    readonly screening: Screening
  }
}
/** Agents with a metric label of their own. */
const MAX_LABELLED_AGENTS = 1000

/** Creates the services of the plugin. */
export function composeChat(deps: ChatDeps) {
  const { config, tools, log, services } = deps
  const { agents, sessions, journal } = services
  let shared: SharedTurns | undefined
  /** Of the marks of API keys, where other daemons are. */
  let keySalt: string | undefined
  const onDefect = (error: unknown, turnId?: string): void => {
    log.error(`a turn failed by a defect${turnId === undefined ? '' : ` (${turnId})`}`, error)
  }
  const background = (work: () => Promise<void>): void => {
    deps.run(work).catch((error: unknown) => onDefect(error))
  }
  const effectfulTools: EffectfulTools = (turnId) => findEffectfulTools(turnId, journal, tools)
  const { record, compactor } = createRecorders(deps)
  const toolCallRate = new ToolCallRate(() => Date.now())
  const onWaiting = (): void => {
    if (deps.leaving.aborted) chat.releaseWaiting()
  }
  const onLost = (turn: LiveTurn): void => shared?.owners.lost(turn)
  const callDeps = { ...deps, ...services, record, toolCallRate, onWaiting, onLost, ...runnerDeps(deps, () => keySalt) }
  const runner = lazyRunner(deps, compactor, { ...callDeps, background, onDefect })
  const sessionStream = new SessionStream({
    turns: (sessionId) => shared?.inSession(sessionId) ?? chat.turnsOf(sessionId),
    message: async ({ sessionId, id }) => (await sessions.turn(sessionId, id)).find(({ role }) => role === 'user'),
    followedChanged: () => shared?.tellWatched(true),
    max: config.session_followers,
  })
  const chat = new ChatService({
    ...deps,
    ...services,
    record,
    runner,
    compactor,
    background,
    effectfulTools,
    sessionStream,
    shared: () => shared,
    keyMark: () => (keySalt === undefined ? undefined : services.daemon.keyMark(keySalt)),
  })
  const agentListFeed = new AgentListFeed({ agents, firstMs: config.agents_updated_first_ms, onFailure: onDefect })
  deps.own('agent list', () => agentListFeed.end())
  stopWithPlugin(deps, chat)

  return {
    chat,
    sessionStream,
    agentListFeed,
    background,
    onDefect,
    toolCallRate,
    toolCalls: lazyToolCalls(deps, callDeps),
    shared: () => shared,
    /** Other daemons are on the database: a session has one owner among them. */
    share: async (recorded: (turnId: string) => Promise<TurnResult>) => {
      const { openSharedTurns } = await import('./owners/open.ts')
      const key = await services.snapshots.deriveKey('chat-key-marks')
      keySalt = key && Buffer.from(key).toString('base64')
      shared = openSharedTurns({ ...deps, ...services, config, record, background, recorded, chat, sessionStream })
    },
    resumeTurns: () => resumeTurns(deps, { chat, record, effectfulTools, shared }),
  }
}

type EffectfulTools = (turnId: string) => Promise<readonly string[]>

/** Marks the turns of an earlier process that cannot resume, and resumes the others. */
async function resumeTurns(
  deps: ChatDeps,
  {
    chat,
    record,
    effectfulTools,
    shared,
  }: {
    readonly chat: ChatService
    readonly record: TurnRecord
    readonly effectfulTools: EffectfulTools
    readonly shared: SharedTurns | undefined
  },
): Promise<void> {
  const { db, services, signal } = deps
  const { journal, sessions, daemon } = services
  const upkeep = new UpkeepStore(db)
  if (!(await upkeep.isDone(FAILED_TURNS_MARKED))) {
    const { markFailedTurns } = await import('./turn/mark-failed-turns.ts')
    await markFailedTurns({ db, upkeep, journal, sessions, record, effectfulTools })
  }
  if (shared) return shared.recoverAll()
  const orphans = await journal.orphans()
  if (orphans.length === 0) return
  const { recoverTurns } = await import('./turn/resume.ts')
  const turns = await recoverTurns({ journal, sessions, record }, orphans)
  // The turns are queued already, so that new messages come after them.
  const loaded = pluginsLoaded(daemon, 'chat', signal)
  for (const turn of turns) chat.enqueue(turn, loaded)
}

/** The tools that a turn called, or may have called, and that may have changed something. */
async function findEffectfulTools(turnId: string, journal: Journal, tools: Tools): Promise<readonly string[]> {
  return (await journal.effects(turnId)).flatMap(({ kind, state, name }) =>
    kind === 'tool' && state !== 'failed' && tools.find(name)?.risk !== 'read' ? [name] : [],
  )
}

function runnerDeps(deps: ChatDeps, keySalt: () => string | undefined) {
  const { config, metrics, services } = deps
  return {
    onWithheld: withheldCounter(metrics),
    onCutCall: cutCallCounter(metrics),
    pluginsLoaded: untilLoaded(deps),
    screening: { policy: config.screening, service: services.screening },
    personalData: config.personal_data,
    waitingAfterMs: config.waiting_after_ms,
    progressMs: config.progress_ms,
    turnMs: config.turn_ms,
    maxIterations: config.max_iterations,
    maxToolCalls: config.tool_calls_per_turn,
    intersectRights: config.intersect_rights,
    isRevoked({ options: { credential, keyMark }, keyGeneration }: LiveTurn) {
      const { daemon } = services
      if (credential !== undefined && !daemon.isHeld(credential)) return true
      if (keyGeneration !== undefined) return keyGeneration !== daemon.keyGeneration()
      const salt = keySalt()
      return keyMark !== undefined && salt !== undefined && daemon.isReplacedKey(keyMark, salt)
    },
    reasoningChars: config.reasoning_chars,
  }
}

function createRecorders({ config, db, hooks, usage, budgets, services }: ChatDeps) {
  const now = (): string => new Date().toISOString()
  const commit = (statements: readonly Statement[]): Promise<unknown> => db.batch(statements)
  const record = new TurnRecord({ ...services, usage, now, commit })
  const compactor = lazyCompactor({ ...services, hooks, budgets, record, commit, config: config.compaction, now })
  return { record, compactor }
}

function withheldCounter(metrics: Metrics): (agent: Agent, label: string, tool: string) => void {
  const counter = metrics.counter(
    'svc_chat_withheld_total',
    'Calls of tools that were refused for what their arguments may carry, by agent.',
  )
  const known = new Set<string>()
  return ({ id }, label, tool) => {
    // The number of labels must not grow with every agent that ever existed.
    if (known.size < MAX_LABELLED_AGENTS) known.add(id)
    counter.add(1, { agent: known.has(id) ? id : '(others)', label, tool })
  }
}

function cutCallCounter(metrics: Metrics): (outcome: Recovery['outcome']) => void {
  const counter = metrics.counter(
    'svc_chat_cut_calls_total',
    'Tool calls that the end of an earlier process cut off, by what became of them.',
  )
  return (outcome) => counter.add(1, { outcome })
}

function stopWithPlugin({ signal, leaving, own }: ChatDeps, chat: ChatService): void {
  const unload = (): void => chat.stopAll('unload')
  const leave = (): void => chat.releaseWaiting()
  leaving.addEventListener('abort', leave, { once: true })
  signal.addEventListener('abort', unload, { once: true })
  own('turns', () => {
    leaving.removeEventListener('abort', leave)
    signal.removeEventListener('abort', unload)
  })
}

const untilLoaded =
  ({ services: { daemon }, signal }: ChatDeps) =>
  (until: AbortSignal): Promise<void> =>
    pluginsLoaded(daemon, 'chat', AbortSignal.any([until, signal]))

/** Few daemons call tools outside of turns. */
function lazyToolCalls({ run }: ChatDeps, deps: ToolCallServiceDeps): ToolCalls {
  let loading: Promise<ToolCalls> | undefined
  const load = async (): Promise<ToolCalls> => new (await import('./turn/tool-calls.ts')).ToolCallService(deps)
  return { call: (request) => run(async () => (await (loading ??= load())).call(request)) }
}

/** The first turn loads the code that runs it: a daemon without one needs none of it. */
function lazyRunner(
  { config, hooks, budgets, log, services: { sessions } }: ChatDeps,
  compactor: Pick<Compactor, 'compact'>,
  deps: Omit<TurnRunnerDeps, 'history' | 'budgetGate' | 'modelsWithoutVision'>,
): Pick<TurnRunner, 'run'> {
  let loaded: TurnRunner | undefined
  const load = async (): Promise<TurnRunner> => {
    const [turn, model, context] = await Promise.all([
      import('./turn/runner.ts'),
      import('./turn/model-caller.ts'),
      import('./context/history.ts'),
    ])
    const { compaction, history_messages: historyMessages } = config
    return (loaded ??= new turn.TurnRunner({
      ...deps,
      history: new context.TurnHistory({ sessions, compactor, compaction, historyMessages, log }),
      budgetGate: new model.BudgetGate(hooks, budgets),
      modelsWithoutVision: new Set(),
    }))
  }
  return { run: async (...turn) => (loaded ?? (await load())).run(...turn) }
}

/** Most conversations are never summarised: the code is loaded by the first one. */
function lazyCompactor({
  hooks,
  budgets,
  ...deps
}: Omit<CompactorDeps, 'budgetGate'> & Pick<ChatDeps, 'hooks' | 'budgets'>): Pick<Compactor, 'compact'> {
  let loading: Promise<Compactor> | undefined
  const load = async (): Promise<Compactor> => {
    const [context, model] = await Promise.all([import('./context/compactor.ts'), import('./turn/model-caller.ts')])
    return new context.Compactor({ ...deps, budgetGate: new model.BudgetGate(hooks, budgets) })
  }
  return { compact: async (request) => (await (loading ??= load())).compact(request) }
}
