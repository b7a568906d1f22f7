import type { ConsolaInstance } from 'consola'
import { omitUndefined } from '../schema/object.ts'
import type { PluginChange } from './daemon.ts'
import type { Slot } from './slot.ts'

/** What the running change has done to plugins so far, to be announced once it has ended. */
export class ChangeRecord {
  readonly #log: ConsolaInstance
  readonly #builtIns: ReadonlySet<string>
  #changes: PluginChange[] = []
  constructor({ log, builtIns }: { readonly log: ConsolaInstance; readonly builtIns: ReadonlySet<string> }) {
    this.#log = log
    this.#builtIns = builtIns
  }

  add(slot: Slot, change: PluginChange['change'], reason?: string): void {
    // What failed in between and goes on now is no change.
    this.forget(new Set([slot.name]))
    this.#changes.push({
      plugin: slot.name,
      change,
      version: slot.definition?.version ?? '',
      source: this.sourceOf(slot),
      ...omitUndefined({ reason }),
    })
  }

  /** Marks a plugin as failed. `waiting`: for a service that is missing. */
  fail(slot: Slot, reason: string, waiting = false): void {
    Object.assign(slot, { state: 'failed', error: reason, waiting } satisfies Partial<Slot>)
    this.#log.error(`plugin "${slot.name}" is not loaded: ${reason}`)
    this.add(slot, 'failed', reason)
  }

  /** What is as before is no change. */
  forget(plugins: ReadonlySet<string>): void {
    this.#changes = this.#changes.filter(({ plugin }) => !plugins.has(plugin))
  }

  /** All of them; the record is empty afterwards. */
  take(): readonly PluginChange[] {
    return this.#changes.splice(0)
  }

  sourceOf({ folder }: Slot): string {
    return this.#builtIns.has(folder) ? 'built-in' : folder
  }
}
