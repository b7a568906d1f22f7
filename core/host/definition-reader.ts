import { basename } from 'node:path'
import type { Access } from './access.ts'
import type { ChangeRecord } from './change-record.ts'
import type { AnyPlugin } from './define.ts'
import type { HostDeps } from './host-deps.ts'
import { isWritten } from './section.ts'
import { findTaken, reasonOf } from './slot.ts'
import type { Slot, Slots } from './slot.ts'

/** Reads the code of plugins, declares their configuration and reads it, into their slots. */
export class DefinitionReader {
  readonly #deps: HostDeps
  readonly #slots: Slots
  readonly #changes: ChangeRecord
  constructor(deps: HostDeps, slots: Slots, changes: ChangeRecord) {
    this.#deps = deps
    this.#slots = slots
    this.#changes = changes
  }

  /** Reads the definition into the slot. An error is stored in its status. */
  async read(slot: Slot, fresh: boolean): Promise<void> {
    // A disabled plugin is not imported if the name of its folder tells that it is disabled.
    if (this.#deps.disabled().includes(basename(slot.folder))) {
      slot.state = 'disabled'
      return
    }
    if (this.#isSetAside(slot, fresh)) return
    try {
      const definition = await this.#deps.loader.load(slot.folder, fresh)
      const state = this.#deps.disabled().includes(definition.name) ? 'disabled' : 'loading'
      Object.assign(slot, {
        name: definition.name,
        definition,
        access: await this.#readAccess(definition, slot.folder),
        state,
        error: undefined,
        waiting: false,
      } satisfies Partial<Slot>)
    } catch (error) {
      this.#changes.fail(slot, reasonOf(error))
    }
  }

  async #readAccess(definition: AnyPlugin, folder: string): Promise<Access> {
    if (this.#deps.builtIns.has(folder)) return 'built-in'
    const { checkAccess } = await import('./access.ts')
    return checkAccess(definition, folder, this.#deps)
  }

  /** A start does not load a plugin that ended the daemon again and again; whoever asks for it tries it again. */
  #isSetAside(slot: Slot, fresh: boolean): boolean {
    const { crashes, log } = this.#deps
    if (fresh) crashes?.forget(slot.folder)
    const reason = crashes?.reasonOf(slot.folder)
    if (reason === undefined) return false
    Object.assign(slot, { state: 'disabled', error: reason } satisfies Partial<Slot>)
    log.error(`plugin "${slot.name}" ${reason}`)
    return true
  }

  /** The code of built-in plugins is loaded in any case, so their configuration keys are known even when disabled. */
  async readDisabled(slots: readonly Slot[]): Promise<void> {
    const { builtIns, loader, log } = this.#deps
    const off = slots.filter(({ state, folder }) => state === 'disabled' && builtIns.has(folder))
    await Promise.all(
      off.map(async (slot) => {
        try {
          slot.definition ??= await loader.load(slot.folder, false)
        } catch (error) {
          log.debug(`plugin "${slot.name}" is disabled, and its code cannot be read: ${reasonOf(error)}`)
        }
      }),
    )
  }

  /** Adds the keys of the first plugins. On a restart an invalid section disables its plugin and not the daemon. */
  declareFirst(): void {
    try {
      this.#deps.declare(this.#slots.all().flatMap(({ definition }) => definition ?? []))
    } catch (error) {
      if (this.#deps.strict) throw error
      this.#deps.log.error(`the configuration of plugins cannot be used as a whole: ${reasonOf(error)}`)
    }
  }

  /** Reads the configuration of a plugin into the slot. An error is stored in its status. */
  configure(slot: Slot, strict: boolean): void {
    if (slot.state !== 'loading' || !slot.definition) return
    try {
      slot.config = this.#deps.pluginConfig(slot.definition)
    } catch (error) {
      if (strict && isWritten(error)) throw error
      this.#changes.fail(slot, reasonOf(error))
    }
  }

  declareLater(slot: Slot): void {
    if (slot.state !== 'loading' || !slot.definition) return
    try {
      this.declareWith(slot, slot.definition)
    } catch (error) {
      this.#changes.fail(slot, reasonOf(error))
    }
  }

  /** All definitions, with the new one in place of that of the slot. */
  declareWith(slot: Slot, definition: AnyPlugin): void {
    const others = this.#slots.all().filter((other) => other !== slot)
    this.#deps.declare([...others.flatMap((other) => other.definition ?? []), definition])
  }

  refuseDuplicate(slot: Slot, others: readonly Slot[]): void {
    const other = others.find((candidate) => candidate !== slot && candidate.name === slot.name)
    if (slot.state !== 'loading') return
    if (other) return this.#changes.fail(slot, `a plugin of this name is loaded from ${other.folder}`)
    if (slot.access === 'declared' && this.#isBuiltIn(slot.name))
      return this.#changes.fail(slot, 'a plugin of this name is built in, and its data would be shared')
    const taken = slot.definition && findTaken(slot.definition, slot, others)
    if (taken !== undefined) this.#changes.fail(slot, taken)
  }

  #isBuiltIn(name: string): boolean {
    return this.#slots.all().some((slot) => slot.name === name && this.#deps.builtIns.has(slot.folder))
  }
}
