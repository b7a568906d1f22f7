import * as v from 'valibot'
import type { Fetch } from 'svc/sdk'
import type { Clock } from 'svc/internal'

const Tags = v.object({ models: v.array(v.object({ name: v.string() })) })
export interface Detected {
  readonly available: boolean
  readonly models: readonly string[]
}
const ABSENT: Detected = { available: false, models: [] }
export interface OllamaDeps {
  readonly fetch: Fetch
  readonly clock: Clock
  readonly limits: { readonly timeoutMs: number; readonly againMs: number }
  readonly baseUrl: () => string | undefined
}

/**
 * Detects whether a local Ollama answers and remembers it for a while. Never rejects: a machine without Ollama is the
 * usual case.
 */
export class Ollama {
  readonly #deps: OllamaDeps
  #last: { readonly at: number; readonly detected: Detected } | undefined
  #detecting: Promise<Detected> | undefined
  /** All detections under way, those from before `forget` too. */
  readonly #running = new Set<Promise<Detected>>()
  readonly #abort = new AbortController()

  constructor(deps: OllamaDeps) {
    this.#deps = deps
  }

  /** The last result; detects when there is none, and again in the background when it is old. */
  async detected(): Promise<Detected> {
    if (!this.#last) return this.detect()
    const { clock, limits } = this.#deps
    // A detection never rejects, so it need not be awaited.
    if (clock.now() - this.#last.at >= limits.againMs) void this.detect()
    return this.#last.detected
  }

  /** Detects now. Concurrent calls share one request. */
  detect(): Promise<Detected> {
    if (this.#detecting) return this.#detecting
    const detecting = this.#request().then((detected) => {
      this.#running.delete(detecting)
      // After `forget`, what this request found is out of date.
      if (this.#detecting === detecting) {
        this.#detecting = undefined
        this.#last = { at: this.#deps.clock.now(), detected }
      }
      return detected
    })
    this.#detecting = detecting
    this.#running.add(detecting)
    return detecting
  }

  /**
   * Discards the result, even a pending one, after a call failed or the address changed: the next call detects again.
   */
  forget(): void {
    this.#last = undefined
    this.#detecting = undefined
  }

  /** Aborts the requests under way. */
  async close(): Promise<void> {
    this.#abort.abort(new Error('the providers plugin was unloaded'))
    await Promise.all(this.#running)
  }

  async #request(): Promise<Detected> {
    const { clock, fetch, limits } = this.#deps
    const baseUrl = this.#deps.baseUrl()
    if (baseUrl === undefined || this.#abort.signal.aborted) return ABSENT
    const controller = new AbortController()
    const stop = (): void => controller.abort(new Error('no answer in time'))
    const cancel = clock.after(limits.timeoutMs, stop)
    this.#abort.signal.addEventListener('abort', stop, { once: true })
    try {
      const response = await fetch(new URL('/api/tags', baseUrl), {
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
