import type { ConsolaInstance } from 'consola'
import { API_VERSION } from './api-version.ts'
import type { AnyPlugin } from './define.ts'

/** A part of a definition that still works and will be removed. */
export interface Deprecation {
  /** As an author finds it in the code, such as `outbound: "operator"`. */
  readonly what: string
  /** The version of the interface that deprecated it. */
  readonly since: string
  /** What to write instead. */
  readonly replacement: string
  isUsed(definition: AnyPlugin): boolean
}
/** What is deprecated at present. */
export const deprecations: readonly Deprecation[] = []

/** Warns of deprecated parts, once for each plugin and part as long as the daemon runs. */
export class DeprecationWarnings {
  readonly #log: ConsolaInstance
  readonly #known: readonly Deprecation[]
  readonly #warned = new Set<string>()
  constructor(log: ConsolaInstance, known: readonly Deprecation[] = deprecations) {
    this.#log = log
    this.#known = known
  }

  check(definition: AnyPlugin): void {
    for (const { what, since, replacement, isUsed } of this.#known) {
      const key = `${definition.name} ${what}`
      if (this.#warned.has(key) || !isUsed(definition)) continue
      this.#warned.add(key)
      const until = `it is deprecated since ${since} and goes with version ${Number.parseInt(API_VERSION, 10) + 1}.0.0`
      this.#log.warn(`plugin "${definition.name}" uses ${what}: ${until}; use ${replacement}`)
    }
  }
}
