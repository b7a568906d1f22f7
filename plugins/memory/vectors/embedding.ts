import { messageOf } from 'svc/internal'
import type { Logger, Statement } from 'svc/sdk'
import type { Embedded, Inference } from '../../providers/contract.ts'
import type { JobOutcome, Queue } from '../../queue/contract.ts'
import type { Settings } from '../config.ts'
import type { MemoryStore } from '../entries/store.ts'
import { EMBED_LANE } from '../lazy.ts'
import type { QuestionVector } from '../retrieval/retrieval.ts'
import type { VectorPlacer } from './placer.ts'
import { toBytes } from './vector.ts'

/** How long a job waits that met another model than it began with. */
const OTHER_MODEL_MS = 10_000

export interface EmbedderDeps {
  readonly store: MemoryStore
  readonly placer: VectorPlacer
  readonly queue: Queue
  readonly inference: () => Inference | undefined
  readonly settings: Settings
  readonly newId: () => string
  readonly log: Pick<Logger, 'warn' | 'debug'>
  readonly embedded: (count: number) => void
  /** Work that nobody waits for. */
  readonly background: (work: () => Promise<void>) => void
}

/** Makes the vectors: in the background those of memories, by the queue, and at once those of questions. */
export class Embedder {
  readonly #deps: EmbedderDeps
  /** Agents for which a job lies in the queue that has not begun to read. */
  readonly #queued = new Set<string>()
  /** Agents whose vectors were found to be of another model since the last job. */
  readonly #outdated = new Set<string>()
  constructor(deps: EmbedderDeps) {
    this.#deps = deps
  }

  get isOff(): boolean {
    return this.#deps.settings.embedding.provider === 'none'
  }

  /** For the batch that changes memories. One job does all that is missing when it begins. */
  later(agentId: string): readonly Statement[] {
    const { queue, newId } = this.#deps
    if (this.isOff || this.#queued.has(agentId)) return []
    const job = queue.add({ lane: EMBED_LANE, id: newId(), group: agentId, payload: { agentId } })
    return [
      {
        ...job,
        written: (changes) => {
          job.written?.(changes)
          this.#queued.add(agentId)
        },
      },
    ]
  }
  /** The vectors of an agent are of another model than those of questions. */
  outdated(agentId: string): void {
    if (this.isOff || this.#outdated.has(agentId)) return
    this.#outdated.add(agentId)
    this.#deps.background(async () => {
      await this.#deps.store.commit(this.later(agentId))
    })
  }
  /** Makes up for jobs that were lost, and for a change that came while a job ended. */
  async sweep(): Promise<void> {
    await this.#deps.placer.sweep()
    if (this.isOff) return
    for (const agentId of await this.#deps.store.agentsWithoutVectors()) {
      this.#queued.delete(agentId)
      await this.#deps.store.commit(this.later(agentId))
    }
  }

  async run(agentId: string, signal: AbortSignal): Promise<JobOutcome> {
    const { store, placer, settings, embedded } = this.#deps
    this.#queued.delete(agentId)
    this.#outdated.delete(agentId)
    const inference = this.#deps.inference()
    if (this.isOff || !inference) return { outcome: 'done' }
    const { model } = toVectors(await inference.embed({ ...this.#choice(), purpose: 'document' }, ['memory'], signal))
    for (;;) {
      signal.throwIfAborted()
      const rows = await store.withoutVector(agentId, model, settings.embedding_batch)
      if (rows.length === 0) return { outcome: 'done' }
      const texts = rows.map(({ key, content }) => (key === undefined ? content : `${key}: ${content}`) || ' ')
      const made = toVectors(await inference.embed({ ...this.#choice(), purpose: 'document' }, texts, signal))
      // The configuration changed meanwhile: the next attempt begins with the new model. The length of its vectors may
      // be another one with each call, too: then this goes on for ever, and costs something each time.
      if (made.model !== model) return { outcome: 'postponed', afterMs: OTHER_MODEL_MS }
      await store.commit(
        rows.flatMap((row, at) =>
          store.setVector(row, agentId, model, toBytes(made.vectors[at] ?? new Float32Array(0))),
        ),
      )
      await placer.run()
      embedded(rows.length)
    }
  }

  /** `undefined` when there is none in time: words alone find something too. */
  async question(text: string, signal: AbortSignal | undefined): Promise<QuestionVector | undefined> {
    const inference = this.#deps.inference()
    if (this.isOff || !inference || text.trim() === '') return undefined
    const timeout = AbortSignal.timeout(this.#deps.settings.question_timeout_ms)
    const both = signal ? AbortSignal.any([signal, timeout]) : timeout
    try {
      const made = toVectors(await inference.embed({ ...this.#choice(), purpose: 'query' }, [text], both))
      const [vector] = made.vectors
      return vector && { model: made.model, isEmbedded: made.isEmbedded, vector }
    } catch (error) {
      this.#deps.log.debug('a question has no vector: it is answered by words', { error: messageOf(error) })
      return undefined
    }
  }

  #choice(): { readonly provider: string; readonly model: string } {
    return this.#deps.settings.embedding
  }
}

function toVectors({ provider, model, vectors }: Embedded) {
  return { model: `${provider}/${model}/${vectors[0]?.length ?? 0}`, isEmbedded: provider === 'builtin', vectors }
}
