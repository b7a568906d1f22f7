import * as v from 'valibot'
import type { Fetch } from 'svc/sdk'
import type { Clock } from './clock.ts'

const Tags = v.object({ models: v.array(v.object({ name: v.string() })) })
export interface Detected {
  readonly available: boolean
  readonly models: readonly string[]
}
const ABSENT: Detected = { available: false, models: [] }

/** Looks whether a local Ollama answers and remembers it for a while. Never rejects: a machine without Ollama is the usual case. */
export class Ollama {
  readonly #fetch: Fetch
  readonly #clock: Clock
  readonly #limits: { readonly timeoutMs: number; readonly againMs: number }
  readonly #baseUrl: () => string | undefined
  #known: { readonly at: number; readonly what: Detected } | undefined
  #detecting: Promise<Detected> | undefined
  readonly #abort = new AbortController()

  constructor(parts: {
    fetch: Fetch
    clock: Clock
    limits: { timeoutMs: number; againMs: number }
    baseUrl: () => string | undefined
  }) {
    this.#fetch = parts.fetch
    this.#clock = parts.clock
    this.#limits = parts.limits
    this.#baseUrl = parts.baseUrl
  }

  /** The last answer; asks when there is none, and again in the background when it is old. */
  async detected(): Promise<Detected> {
    if (!this.#known) return this.detect()
    if (this.#clock.now() - this.#known.at >= this.#limits.againMs && !this.#detecting) this.detect().catch(() => {})
    return this.#known.what
  }

  /** Asks now. Calls at the same time share one request. */
  detect(): Promise<Detected> {
    return (this.#detecting ??= this.#ask()
      .then((what) => {
        this.#known = { at: this.#clock.now(), what }
        return what
      })
      .finally(() => {
        this.#detecting = undefined
      }))
  }

  /** Forgets the answer after a call failed, so that the next question asks again. */
  forget(): void {
    this.#known = undefined
  }

  /** Ends a request that is under way. */
  async close(): Promise<void> {
    this.#abort.abort(new Error('the providers plugin was unloaded'))
    await this.#detecting
  }

  async #ask(): Promise<Detected> {
    const baseUrl = this.#baseUrl()
    if (baseUrl === undefined || this.#abort.signal.aborted) return ABSENT
    const controller = new AbortController()
    const stop = (): void => controller.abort(new Error('no answer in time'))
    const cancel = this.#clock.after(this.#limits.timeoutMs, stop)
    this.#abort.signal.addEventListener('abort', stop, { once: true })
    try {
      const response = await this.#fetch(new URL('/api/tags', baseUrl), {
        signal: controller.signal,
        maxBytes: 1_000_000,
      })
      const tags = v.safeParse(Tags, response.ok ? await response.json() : undefined)
      if (!tags.success) return ABSENT
      return {
        available: true,
        models: tags.output.models.map(({ name }) => name).filter((name) => !/embed/i.test(name)),
      }
    } catch {
      // Refused, silent or something else on that port: there is no Ollama.
      return ABSENT
    } finally {
      cancel()
      this.#abort.signal.removeEventListener('abort', stop)
    }
  }
}
