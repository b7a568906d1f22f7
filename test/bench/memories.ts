import { createConsola } from 'consola'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { openDatabase } from '../../core/storage/open.ts'
import { parse } from '../../core/schema/parse.ts'
import { wallClock } from '../../core/scope/clock.ts'
import { embedLocally } from '../../adapters/providers/builtin/embedding.ts'
import type { Agents } from '../../plugins/agents/contract.ts'
import { Settings } from '../../plugins/memory/config.ts'
import type { NewMemory } from '../../plugins/memory/contract.ts'
import { openMemories } from '../../plugins/memory/entries/open.ts'
import { migrations } from '../../plugins/memory/migrations.ts'
import type { Inference } from '../../plugins/providers/contract.ts'
import { migrations as queueMigrations } from '../../plugins/queue/migrations.ts'
import { embeddedQueue } from '../support/embedded-queue.ts'
import type { Result } from './figures.ts'

const ENTRIES = 100_000
const CONCURRENT = 64
const QUESTIONS = 400
const WORDS = 20_000
const AGENT = 'bench'

/** Memories of one agent: how many are written in a second, and how long a search among 100,000 takes. */
export async function memories(): Promise<readonly Result[]> {
  const home = await mkdtemp(join(tmpdir(), 'svc-bench-memories-'))
  const log = createConsola({ level: -999 })
  try {
    await using database = await openDatabase({ url: `sqlite:${join(home, 'svc.db')}`, log })
    await database.migrate('queue', queueMigrations)
    await database.migrate('memory', migrations)
    const db = database.sql
    const work = new Set<Promise<void>>()
    const background = (run: () => Promise<void>): void => {
      const running = run().finally(() => work.delete(running))
      work.add(running)
    }
    const agent = { id: AGENT, name: AGENT, manifest: { capabilities: { memory_read: ['self.*'], memory_write: [] } } }
    const embed: Inference['embed'] = async (_, texts, signal) => ({
      ...(await embedLocally({ model: 'ngram-256', texts }, signal)),
      provider: 'builtin',
      model: 'ngram-256',
      price: undefined,
    })
    const opened = openMemories({
      db,
      log: { debug() {}, info() {}, warn() {}, error: console.error },
      config: parse(Settings, { max_memories_per_agent: 1_000_000 }),
      agents: { find: async () => agent, require: async () => agent } as unknown as Agents,
      audit: {
        entry: () => db.sql`DELETE FROM memory_tombstone WHERE id = ''`,
        write: async () => {},
        entries: async () => [],
      },
      queue: embeddedQueue({ db, clock: wallClock, background }),
      inference: () => ({ embed }) as unknown as Inference,
      background,
      changed() {},
      measured() {},
      embedded() {},
      forgotten() {},
    })
    const random = generator(7)
    const writes = await measureWrites((memory) => opened.memories.add([memory]), random)
    await opened.embedder.run(AGENT, AbortSignal.timeout(3_600_000))
    const reader = { kind: 'agent', agentId: AGENT } as const
    const search = (text: string) => opened.memories.search({ text, limit: 10, reader })
    const began = performance.now()
    await search('first')
    const firstMs = performance.now() - began
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    const took: number[] = []
    for (let asked = 0; asked < QUESTIONS; asked++) {
      // Every third question is of the commonest words.
      const text = `How does ${asked % 3 === 0 ? [0, 1, 2].map(toWord).join(' ') : sentence(random, 5)} fit together?`
      const from = performance.now()
      await search(text)
      took.push(performance.now() - from)
    }
    delay.disable()
    await Promise.all(work)
    took.sort((one, other) => one - other)
    const at = (share: number): number => took[Math.floor(took.length * share)] ?? 0
    return [
      line('memories written in a second, one a commit, 64 at a time', writes, 2_000, true),
      line('search among 100,000, p50 in ms', at(0.5), 10, false),
      line('search among 100,000, p99 in ms', at(0.99), 40, false),
      line('event loop held by a search, p99 in ms', delay.percentile(99) / 1e6, 40, false),
      line('first search, which reads the signs of all vectors, in s', firstMs / 1_000, 60, false),
    ]
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

async function measureWrites(add: (memory: NewMemory) => Promise<unknown>, random: () => number): Promise<number> {
  const began = performance.now()
  let left = ENTRIES
  const writer = async (): Promise<void> => {
    while (left-- > 0)
      await add({
        agentId: AGENT,
        content: sentence(random, 12),
        level: 'agent',
        confidence: 1,
        tags: [],
        source: { kind: 'person', labels: [] },
      })
  }
  await Promise.all(Array.from({ length: CONCURRENT }, writer))
  return ENTRIES / ((performance.now() - began) / 1_000)
}

/** Words as in a language: the first ones far more often than the others. */
function sentence(random: () => number, words: number): string {
  return Array.from({ length: words }, () => toWord(Math.floor(WORDS ** random()) - 1)).join(' ')
}
/** Of letters alone, as words that have other forms. */
const toWord = (number: number): string => `wor${[...String(number)].map((digit) => SYLLABLES[Number(digit)]).join('')}`
const SYLLABLES = ['ba', 'ce', 'di', 'fo', 'gu', 'la', 'me', 'ni', 'po', 'tu']
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
function line(label: string, value: number, goal: number, isLeast: boolean): Result {
  return {
    label,
    value: value.toFixed(value < 100 ? 1 : 0),
    floor: '',
    ratio: '',
    goal: `${isLeast ? '≥' : '≤'} ${goal}`,
    reached: isLeast ? value >= goal : value <= goal,
  }
}
