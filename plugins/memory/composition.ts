import { toIso } from 'svc/internal'
import type { Hooks, Logger, Metrics, PluginDatabase, Routes, Tools } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import { TurnContextBuilt, TurnEnding, TurnFailed } from '../chat/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Queue } from '../queue/contract.ts'
import type { Screening } from '../screening/contract.ts'
import type { Sessions } from '../sessions/contract.ts'
import type { UsageLedger } from '../usage/contract.ts'
import type { Settings } from './config.ts'
import type { Memories, Memory } from './contract.ts'
import { EXTRACTION_LANE, SPOKEN } from './extraction/spoken.ts'
import { proactiveOf } from './extraction/settings.ts'
import type { Proactive } from './extraction/settings.ts'
import { graphRoutes } from './graph/routes.ts'
import type { ReportedMessage, WorkerDeps } from './extraction/worker.ts'
import type { Graph } from './graph/service.ts'
import { graphTools } from './graph/tools.ts'
import { useRoutes } from './prompt/routes.ts'
import type { MemoryUses } from './prompt/store.ts'

export interface ProactiveDeps {
  readonly config: Settings
  readonly db: PluginDatabase
  readonly hooks: Hooks
  readonly log: Logger
  readonly metrics: Metrics
  readonly routes: Routes
  readonly tools: Tools
  readonly services: { readonly agents: Agents; readonly audit: Audit; readonly queue: Queue }
  readonly memories: Memories
  readonly inference: () => Inference | undefined
  readonly sessions: () => Sessions | undefined
  readonly screening: () => Screening | undefined
  readonly usage: () => UsageLedger | undefined
  own(label: string, dispose: () => void): void
}

/** Remembers what a person said elsewhere. */
export type Report = (message: ReportedMessage, signal: AbortSignal) => Promise<readonly Memory[]>
type LazyGraph = () => Promise<Graph>
type LazyUses = () => Promise<MemoryUses>

/** Remembering by itself: what follows a turn, what enters a prompt, and the graph. Its code is loaded when it is needed. */
export function addProactive(deps: ProactiveDeps): Report {
  const { config, db, log, memories, routes, services, tools } = deps
  const { agents } = services
  const graph = lazy(async (): Promise<Graph> => {
    const [{ Graph: Opened }, { GraphStore }] = await Promise.all([
      import('./graph/service.ts'),
      import('./graph/store.ts'),
    ])
    return new Opened({ store: new GraphStore(db, log), settings: config, now: Date.now })
  })
  const uses = lazy(async (): Promise<MemoryUses> => new (await import('./prompt/store.ts')).MemoryUses(db, log))
  tools.add(
    ...graphTools(async (agentId, access) => {
      await agents.checkMemory(agentId, access, 'memory')
      return graph()
    }),
  )
  routes.add(...graphRoutes(services, graph), ...useRoutes({ uses, memories }))
  const report = addExtraction(deps, graph)
  followTurns(deps, uses)
  return report
}

function addExtraction(deps: ProactiveDeps, graph: LazyGraph): Report {
  const { config: settings, memories, metrics, services } = deps
  const extracted = metrics.counter(
    'svc_memory_extracted_total',
    'What was found in messages to be remembered, by what became of it.',
  )
  const open = async (): Promise<WorkerDeps> => ({
    ...deps,
    settings,
    memories,
    agents: services.agents,
    graph: await graph(),
    inference: required(deps.inference(), 'providers'),
    sessions: required(deps.sessions(), 'sessions'),
    now: Date.now,
    count: (outcome, by = 1) => extracted.add(by, { outcome }),
  })
  const worker = services.queue.work(EXTRACTION_LANE, {
    run: async (job) => (await import('./extraction/worker.ts')).memorize(await open(), job),
  })
  deps.own('extraction', worker)
  return async (message, signal) =>
    (await import('./extraction/worker.ts')).memorizeReported(await open(), message, signal)
}

function followTurns({ config, hooks, log, memories, services }: ProactiveDeps, uses: LazyUses): void {
  // Most agents do neither: their turns read no manifest for it.
  const known = new WeakMap<Agent, Proactive>()
  const settingsOf = (agent: Agent): Proactive => {
    let own = known.get(agent)
    if (!own) known.set(agent, (own = proactiveOf(agent, config)))
    return own
  }
  hooks.on(TurnContextBuilt, async (context) => {
    const { agent, turn } = context
    if (!settingsOf(agent).retrieves) return context
    const { retrieve } = await import('./prompt/retrieve.ts')
    const found = await retrieve({ memories, settings: config, log }, context)
    if (!found) return context
    const open = await uses()
    open.found(turn.id, found.ids)
    return { ...context, additions: [...context.additions, found.addition] }
  })
  hooks.on(TurnEnding, async (ending) => {
    const { agent, turn, statements } = ending
    const { memorizes, retrieves } = settingsOf(agent)
    if (!memorizes && !retrieves) return ending
    const used = retrieves ? (await uses()).ended(turn.id, agent.id, turn.user, toIso(Date.now())) : []
    if (!memorizes || !SPOKEN.has(turn.entryPoint)) return { ...ending, statements: [...statements, ...used] }
    const { id: turnId, sessionId, entryPoint, user: userId } = turn
    const job = services.queue.add({
      lane: EXTRACTION_LANE,
      id: turnId,
      payload: { turnId, sessionId, agentId: agent.id, userId, entryPoint },
      // One after the other: each is compared with what the one before it found.
      group: agent.id,
      agentId: agent.id,
    })
    return { ...ending, statements: [...statements, ...used, job] }
  })
  hooks.on(TurnFailed, async ({ agent, turnId }) => {
    if (settingsOf(agent).retrieves) (await uses()).failed(turnId)
  })
}

function lazy<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined
  return () => (opened ??= open())
}
function required<T>(service: T | undefined, plugin: string): T {
  if (service === undefined) throw new Error(`nothing is remembered while the plugin "${plugin}" is not loaded`)
  return service
}
