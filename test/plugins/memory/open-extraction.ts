import { newId } from '../../../core/schema/new-id.ts'
import { parse } from '../../../core/schema/parse.ts'
import type { Agent } from '../../../plugins/agents/contract.ts'
import { Settings } from '../../../plugins/memory/config.ts'
import { memorize } from '../../../plugins/memory/extraction/worker.ts'
import type { Outcome } from '../../../plugins/memory/extraction/worker.ts'
import { Graph } from '../../../plugins/memory/graph/service.ts'
import { GraphStore } from '../../../plugins/memory/graph/store.ts'
import type { Inference } from '../../../plugins/providers/contract.ts'
import type { JobOutcome } from '../../../plugins/queue/contract.ts'
import type { Screening } from '../../../plugins/screening/contract.ts'
import type { Label, Message } from '../../../plugins/sessions/contract.ts'
import { openStage } from './open-store.ts'
import type { MemoryStage } from './open-store.ts'

/** What somebody said in one turn. */
export interface SaidTurn {
  readonly agentId: string
  readonly userId: string | undefined
  readonly entryPoint: string
  readonly message: Message
}
export interface ExtractionStage extends MemoryStage {
  readonly graph: Graph
  /** Answers of the model that finds facts; one that is a function is called. Without any the rules find them. */
  readonly answers: (string | (() => never))[]
  /** Before each call of the model. */
  check: () => Promise<void>
  /** Fails instead of writing relations, once. */
  failRelations: boolean
  readonly counts: Map<Outcome, number>
  /** Runs the job of a turn, as the queue does; `ageMs`: since it was added. */
  run(turn: SaidTurn, ageMs?: number): Promise<JobOutcome>
  /** Of the memories that hold, in alphabetical order. */
  contents(agentId: string): Promise<readonly string[]>
}

/** A turn, later than all before. */
export function turnOf(
  agentId: string,
  text: string,
  {
    userId,
    entryPoint = 'rest',
    labels = [],
  }: { readonly userId?: string; readonly entryPoint?: string; readonly labels?: readonly Label[] } = {},
): SaidTurn {
  const id = newId()
  const createdAt = new Date().toISOString()
  const block = { type: 'text' as const, text, ...(labels.length > 0 && { labels }) }
  return {
    agentId,
    userId,
    entryPoint,
    message: { id, role: 'user', blocks: [block], turnId: `turn-${id}`, createdAt },
  }
}

/** Extraction with its real store, graph and rules, over turns that a test gives. */
export async function openExtraction(
  settings: object = {},
  url = 'sqlite::memory:',
  grants: Record<string, [string[], string[]]> = {},
): Promise<ExtractionStage> {
  const memory = await openStage(settings, { url, grants })
  const { db, opened } = memory
  const parsed = parse(Settings, { auto_memorize: true, ...settings })
  const log = { debug() {}, info() {}, warn() {}, error: console.error }
  const graph = new Graph({ store: new GraphStore(db, log), settings: parsed, now: Date.now })
  const counts = new Map<Outcome, number>()
  const answers: ExtractionStage['answers'] = []
  const model = () => ({
    provider: answers.length > 0 ? 'fake' : 'builtin',
    model: 'm',
    price: undefined,
    contextWindow: 8_000,
  })
  const inference = {
    resolve: async () => model(),
    async *complete() {
      const answer = answers.shift() ?? ''
      yield { type: 'text', delta: typeof answer === 'string' ? answer : answer() }
      yield { type: 'end', usage: { input: 1, output: 1 } }
    },
  } as unknown as Inference
  const screening = {
    screen: async (text: string) => ({ level: /ignore all previous/i.test(text) ? 'critical' : 'none' }),
  } as unknown as Screening
  const stage: ExtractionStage = {
    ...memory,
    graph,
    answers,
    counts,
    failRelations: false,
    check: async () => {},
    run: ({ agentId, userId, entryPoint, message }, ageMs = 0) =>
      memorize(
        {
          db,
          inference,
          settings: parsed,
          hooks: { check: async () => stage.check() } as never,
          usage: () => undefined,
          screening: () => screening,
          agents: { find: async (id) => agentOf(id) },
          sessions: { turn: async () => [message] },
          memories: opened.memories,
          graph: {
            async addTriples(...args) {
              if (stage.failRelations) {
                stage.failRelations = false
                throw new Error('the process ended here')
              }
              return graph.addTriples(...args)
            },
          },
          now: Date.now,
          count: (outcome, by = 1) => void counts.set(outcome, (counts.get(outcome) ?? 0) + by),
        },
        {
          lane: 'memory-extraction',
          id: message.turnId,
          payload: { turnId: message.turnId, sessionId: 's', agentId, userId, entryPoint },
          failures: 0,
          losses: 0,
          createdAt: Date.now() - ageMs,
          signal: AbortSignal.timeout(60_000),
        },
      ),
    async contents(agentId) {
      const { memories } = await opened.memories.list({ reader: { kind: 'operator' }, agentId, limit: 100, offset: 0 })
      return memories.map(({ content }) => content).toSorted()
    },
  }
  return stage
}

function agentOf(id: string): Agent {
  const capabilities = { memory_read: ['self.*'], memory_write: ['self.*'] }
  const manifest = { model: { provider: 'x', model: 'm' }, routing: { simple_model: '' }, capabilities }
  return { id, name: id, manifest } as unknown as Agent
}
