import { newId } from 'svc/internal'
import type { Logger, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { Queue } from '../../queue/contract.ts'
import type { Settings } from '../config.ts'
import { Embedder } from '../vectors/embedding.ts'
import { Retrieval } from '../retrieval/retrieval.ts'
import { VectorPlacer } from '../vectors/placer.ts'
import { VectorSearch } from '../vectors/search.ts'
import { SignStore } from '../vectors/store.ts'
import { MemoryRemoval } from '../removal/removal.ts'
import { RemovalStore } from '../removal/rows/store.ts'
import { WordSearch } from '../words/search.ts'
import { WordStore } from '../words/store.ts'
import { WordIndex } from '../words/word-index.ts'
import { Notes } from './notes.ts'
import { MemoryService } from './service.ts'
import type { MemoryDeps } from './service.ts'
import { MemoryStore } from './store.ts'
import { Upkeep } from '../upkeep/upkeep.ts'
import { UpkeepStore } from '../upkeep/store.ts'
import { UseRecorder } from '../upkeep/use-recorder.ts'

export interface OpenDeps {
  readonly db: PluginDatabase
  readonly log: Logger
  readonly config: Settings
  readonly agents: Agents
  readonly audit: Audit
  readonly queue: Queue
  readonly inference: () => Inference | undefined
  readonly background: (work: () => Promise<void>) => void
  readonly changed: MemoryDeps['changed']
  readonly measured: (ms: number, found: number) => void
  readonly embedded: (count: number) => void
  readonly forgotten: (reason: string, count: number) => void
}

/** Everything of the plugin that a start does not need. */
export interface OpenMemories extends Pick<OpenDeps, 'audit' | 'db' | 'log'> {
  readonly settings: Settings
  readonly agents: Agents
  readonly store: MemoryStore
  readonly memories: MemoryService
  readonly notes: Notes
  readonly vectors: VectorSearch
  readonly wordIndex: WordIndex
  readonly embedder: Embedder
  readonly uses: UseRecorder
  readonly upkeep: Upkeep
  readonly removal: MemoryRemoval
}

export function openMemories(deps: OpenDeps): OpenMemories {
  const { db, log, config: settings, agents, audit, background } = deps
  const now = Date.now
  const store = new MemoryStore(db, log)
  const rows = new UpkeepStore(db, log)
  const signs = new SignStore(db)
  const placer = new VectorPlacer(signs)
  const vectors = new VectorSearch({ store: signs, memories: store, maxKept: settings.index_memories })
  const wordStore = new WordStore(db, log)
  const wordIndex = new WordIndex({ store: wordStore, queue: deps.queue, newId })
  const embedder = new Embedder({ ...deps, store, placer, settings, newId })
  const uses = new UseRecorder(rows, background, now)
  const retrieval = new Retrieval({
    store,
    signs,
    vectors,
    words: new WordSearch(wordStore, now),
    settings,
    now,
    embedQuestion: (text, signal) => embedder.question(text, signal),
    outdated: (agentId) => embedder.outdated(agentId),
    used: (ids) => uses.add(ids),
    measured: deps.measured,
  })
  const removal = openRemoval(deps)
  const memories = new MemoryService({
    store,
    retrieval,
    wordIndex,
    agents,
    audit,
    settings,
    removal,
    now,
    changed: deps.changed,
    embedLater: (agentId) => embedder.later(agentId),
    grown: (agentId, added) => upkeep.grown(agentId, added),
  })
  const upkeep = new Upkeep({ ...deps, store, rows, memories, removal, settings, now })
  background(() => wordIndex.fillLater())
  background(() => placer.run())
  return {
    audit,
    db,
    log,
    settings,
    agents,
    store,
    memories,
    notes: new Notes({ store, memories, removal, agents, settings }),
    vectors,
    wordIndex,
    embedder,
    uses,
    upkeep,
    removal,
  }
}

function openRemoval({ db, queue, forgotten }: OpenDeps): MemoryRemoval {
  const store = new RemovalStore(db)
  return new MemoryRemoval({
    store,
    queue,
    now: Date.now,
    newId,
    removed: (count) => forgotten('agent_removed', count),
  })
}
