import { createConsola } from 'consola'
import { matchesWildcard } from 'svc/internal'
import { onTestFinished } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import { parse } from '../../../core/schema/parse.ts'
import { wallClock } from '../../../core/scope/clock.ts'
import type { Agents } from '../../../plugins/agents/contract.ts'
import { Settings } from '../../../plugins/memory/config.ts'
import type { NewMemory } from '../../../plugins/memory/contract.ts'
import { openMemories } from '../../../plugins/memory/entries/open.ts'
import type { OpenMemories } from '../../../plugins/memory/entries/open.ts'
import { migrations } from '../../../plugins/memory/migrations.ts'
import type { Inference } from '../../../plugins/providers/contract.ts'
import { migrations as queueMigrations } from '../../../plugins/queue/migrations.ts'
import type { PluginDatabase } from '../../../core/storage/database.ts'
import { embedLocally } from '../../../adapters/providers/builtin/embedding.ts'
import { embeddedQueue } from '../../support/embedded-queue.ts'

export interface MemoryStage {
  readonly opened: OpenMemories
  readonly db: PluginDatabase
  /** Makes the vectors that are missing. */
  embed(agentId: string): Promise<void>
  /** Settles when no work is left that nobody waits for. */
  settled(): Promise<void>
  /** What embeds from now on. */
  useModel(model: string): void
  /** Lets something else make the vectors from now on. */
  useEmbedding(embed: Inference['embed']): void
}

/** The memories of a daemon in memory: its real store, queue and local embedding, with agents of these names. */
export async function openStage(
  settings: object = {},
  {
    url = 'sqlite::memory:',
    grants = {},
    told = () => {},
  }: {
    url?: string
    grants?: Record<string, [string[], string[]]>
    /** Of each audit entry and each event. */
    told?: (what: string) => void
  } = {},
): Promise<MemoryStage> {
  const database = await openDatabase({ url, log: createConsola({ level: -999 }) })
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.migrate('queue', queueMigrations)
  await database.migrate('memory', migrations)
  const db = database.sql
  const work = new Set<Promise<void>>()
  const background = (run: () => Promise<void>): void => {
    const running = run().finally(() => work.delete(running))
    work.add(running)
  }
  let model = 'ngram-256'
  let embed: Inference['embed'] = async (_, texts, signal) => {
    const made = await embedLocally({ model, texts }, signal)
    return { ...made, provider: 'builtin', model, price: undefined }
  }
  const opened = openMemories({
    db,
    log: { debug() {}, info() {}, warn() {}, error: console.error },
    config: parse(Settings, settings),
    agents: agentsNamed(grants),
    audit: {
      entry({ details }) {
        told(`audit: ${details}`)
        return db.sql`SELECT 1`
      },
      write: async () => {},
      entries: async () => [],
    },
    queue: embeddedQueue({ db, clock: wallClock, background }),
    inference: () => ({ embed: (...args) => embed(...args) }) as Pick<Inference, 'embed'> as Inference,
    background,
    changed: (change, _agentId, ids) => told(`event: ${ids.length} ${change}`),
    measured() {},
    embedded() {},
    forgotten() {},
  })
  const settled = async (): Promise<void> => {
    while (work.size > 0) await Promise.all(work)
  }
  onTestFinished(settled)
  return {
    opened,
    db,
    settled,
    async embed(agentId) {
      await opened.embedder.run(agentId, AbortSignal.timeout(60_000))
    },
    useModel: (name) => (model = name),
    useEmbedding: (other) => (embed = other),
  }
}

/** Every agent there is has the id that is asked for; `grants`: `memory_read` and `memory_write` by agent. */
function agentsNamed(grants: Record<string, [string[], string[]]>): Agents {
  const agent = (id: string) => {
    const [memory_read, memory_write] = grants[id] ?? [['self.*'], ['self.*']]
    return { id, name: id, manifest: { capabilities: { memory_read, memory_write } } }
  }
  return {
    find: async (id: string) => agent(id),
    require: async (id: string) => agent(id),
    list: async () => Object.keys(grants).map(agent),
    checkMemory: async () => {},
    readableMemory: async (id: string, keys: readonly string[]) => {
      const { memory_read: patterns } = agent(id).manifest.capabilities
      return keys.filter((key) => patterns.some((pattern) => matchesWildcard(pattern, `self.${key}`)))
    },
  } as unknown as Agents
}

export const memoryOf = (agentId: string, content: string, more: Partial<NewMemory> = {}): NewMemory => ({
  agentId,
  content,
  level: 'agent',
  confidence: 1,
  tags: [],
  source: { kind: 'person', labels: [] },
  ...more,
})
