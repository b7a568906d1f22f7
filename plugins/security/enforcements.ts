import { onEnforced } from 'svc/internal'
import type { Counter } from 'svc/sdk'
import { systemNames } from './contract.ts'

/** What the systems really refused, by name. Dispose to stop counting. */
export class Enforcements implements Disposable {
  readonly since = new Date().toISOString()
  readonly #counts = new Map<string, { count: number; last: string }>()
  readonly #stop: () => void

  constructor(counter: Counter) {
    const known: ReadonlySet<string> = new Set(systemNames)
    this.#stop = onEnforced((system) => {
      if (!known.has(system)) return
      const seen = this.#counts.get(system)
      this.#counts.set(system, { count: (seen?.count ?? 0) + 1, last: new Date().toISOString() })
      counter.add(1, { system })
    })
  }

  of(system: string): { readonly count: number; readonly last: string | undefined } {
    return this.#counts.get(system) ?? { count: 0, last: undefined }
  }

  [Symbol.dispose](): void {
    this.#stop()
  }
}
