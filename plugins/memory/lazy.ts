import type { Hooks, Logger, Metrics, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Queue } from '../queue/contract.ts'
import type { Settings } from './config.ts'
import { MemoryChanged } from './contract.ts'
import type { OpenMemories } from './entries/open.ts'

/** The lanes of the queue. */
export const EMBED_LANE = 'memory-vectors'
export const WORDS_LANE = 'memory-words'
export const SWEEP_LANE = 'memory-sweep'
export const REMOVAL_LANE = 'memory-removal'
/** In seconds. */
const SEARCH_BOUNDS = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2]

export interface LazyDeps {
  readonly config: Settings
  readonly db: PluginDatabase
  readonly hooks: Hooks
  readonly log: Logger
  readonly metrics: Metrics
  readonly agents: Agents
  readonly audit: Audit
  readonly queue: Queue
  readonly inference: () => Inference | undefined
  own(label: string, dispose: () => void): void
  run<T>(work: () => Promise<T> | T): Promise<T>
}

/** The memories, whose code is loaded with their first use. */
export function lazyMemories(deps: LazyDeps): () => Promise<OpenMemories> {
  const { hooks, log, metrics, run } = deps
  const changes = metrics.counter('svc_memory_changes_total', 'Memories that were added, changed and deleted.')
  const forgotten = metrics.counter('svc_memory_forgotten_total', 'Memories that were deleted by themselves, by why.')
  const embedded = metrics.counter('svc_memory_vectors_total', 'Vectors that were made of memories.')
  const took = metrics.histogram('svc_memory_search_seconds', 'How long searches in memories took.', SEARCH_BOUNDS)
  let last: OpenMemories | undefined
  metrics.observed(
    'svc_memory_indexed',
    'Memories for whose vectors there is room in what is kept in memory of them.',
    () => [{ value: last?.vectors.size ?? 0 }],
  )
  const background = (work: () => Promise<void>): void => {
    run(work).catch((error: unknown) => log.error('work on memories failed', error))
  }
  const open = async (): Promise<OpenMemories> => {
    const { openMemories } = await import('./entries/open.ts')
    return (last = openMemories({
      ...deps,
      background,
      changed(change, agentId, ids) {
        changes.add(ids.length, { change })
        background(() => hooks.emit(MemoryChanged, { change, agentId, ids }))
      },
      measured: (ms) => took.observe(ms / 1_000),
      embedded: (count) => embedded.add(count),
      forgotten: (reason, count) => forgotten.add(count, { reason }),
    }))
  }
  let opened: Promise<OpenMemories> | undefined
  return () => (opened ??= open())
}

/** The agent that a job is for. */
export function agentOf(payload: unknown): string {
  return typeof payload === 'object' && payload !== null && 'agentId' in payload ? String(payload.agentId) : ''
}
