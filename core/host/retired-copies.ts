import type { ConsolaInstance } from 'consola'
import type { Scope } from '../scope/scope.ts'

export interface RetirementSettings {
  /** How long the calls of an old copy may go on. */
  readonly retireMs: number
  readonly maxCopies: number
  /** How long they have to end once they were aborted. */
  readonly drainMs: number
}

/** Old copies of plugins whose calls still run while new code serves. */
export class RetiredCopies {
  readonly #settings: () => RetirementSettings
  readonly #log: ConsolaInstance
  readonly #copies = new Map<string, Map<Scope, Promise<void>>>()

  constructor(settings: () => RetirementSettings, log: ConsolaInstance) {
    this.#settings = settings
    this.#log = log
  }

  /** How many copies of the plugin still run. */
  count(plugin: string): number {
    return this.#copies.get(plugin)?.size ?? 0
  }

  /** Closes the copy when its calls have ended, or when they took too long. */
  add(scope: Scope): void {
    const copies = this.#copies.get(scope.name) ?? new Map<Scope, Promise<void>>()
    this.#copies.set(scope.name, copies)
    copies.set(scope, this.#finish(scope, copies))
    const { maxCopies, drainMs } = this.#settings()
    for (const oldest of [...copies.keys()].slice(0, -maxCopies)) void this.#close(oldest, drainMs)
  }

  /** Ends the copies of one plugin, or of all. Never rejects. */
  async close(plugin?: string): Promise<void> {
    const found = plugin === undefined ? [...this.#copies.values()] : [this.#copies.get(plugin) ?? new Map()]
    const { drainMs } = this.#settings()
    await Promise.all(
      found.flatMap((copies: Map<Scope, Promise<void>>) =>
        [...copies].flatMap(([scope, finished]) => [this.#close(scope, drainMs), finished]),
      ),
    )
  }

  async #finish(scope: Scope, copies: Map<Scope, Promise<void>>): Promise<void> {
    const { retireMs, drainMs } = this.#settings()
    await scope.idle(retireMs)
    await this.#close(scope, drainMs)
    copies.delete(scope)
    if (copies.size === 0 && this.#copies.get(scope.name) === copies) this.#copies.delete(scope.name)
  }

  async #close(scope: Scope, drainMs: number): Promise<void> {
    try {
      await scope.close(scope.running === 0 ? 0 : drainMs)
    } catch (error) {
      this.#log.error(`an old copy of plugin "${scope.name}" did not end cleanly`, error)
    }
  }
}
