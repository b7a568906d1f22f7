import { basename, dirname } from 'node:path'
import type { Access } from './access.ts'
import type { PluginStatus } from './daemon.ts'
import type { AnyPlugin } from './define.ts'
import { providedIds, requiredIds } from './definition.ts'
import { dependentsOf, plan } from './graph.ts'
import type { Node } from './graph.ts'
import type { Instance } from './instance.ts'
import type { IsolatedDefinition } from './isolation/isolated-plugin.ts'
import { permissionsOf } from './permissions.ts'
import { messageOf } from '../errors/message.ts'

/** Validated code and configuration, ready for setup. */
export interface Ready {
  readonly definition: AnyPlugin
  readonly config: Readonly<Record<string, unknown>>
  readonly access: Access
}

/** A plugin folder and its state. */
export interface Slot {
  readonly folder: string
  /** The name of the folder until the definition was read. */
  name: string
  state: PluginStatus['state']
  definition: AnyPlugin | undefined
  config: Readonly<Record<string, unknown>> | undefined
  instance: Instance | undefined
  access: Access
  /** The code before the last reload, while the reload is watched. */
  previous: Ready | undefined
  error: string | undefined
  /** It waits for a missing service. */
  waiting: boolean
  reloads: number
}

export function statusOf(slot: Slot, source: string, retired: number): PluginStatus {
  return {
    name: slot.name,
    version: slot.definition?.version ?? '',
    state: slot.state,
    source,
    requires: requiredBy(slot),
    provides: providedBy(slot),
    ledger: slot.instance?.scope.ledger() ?? [],
    pages: slot.instance ? (slot.definition?.pages ?? []) : [],
    folder: /\.m?[jt]s$/.test(slot.folder) ? dirname(slot.folder) : slot.folder,
    reloads: slot.reloads,
    retired,
    error: slot.error ?? isolatedOf(slot)?.state(),
    isolation: isolatedOf(slot) ? 'worker' : 'none',
    access: slot.access,
    permissions: slot.definition ? permissionsOf(slot.definition) : [],
  }
}

function isolatedOf({ definition, instance }: Slot): IsolatedDefinition['isolated'] | undefined {
  return instance && definition && 'isolated' in definition ? (definition as IsolatedDefinition).isolated : undefined
}

export const requiredBy = (slot: Slot): readonly string[] => (slot.definition ? requiredIds(slot.definition) : [])
export const providedBy = (slot: Slot): readonly string[] => (slot.definition ? providedIds(slot.definition) : [])
export function toNode(slot: Slot): Node {
  return { name: slot.name, requires: requiredBy(slot), provides: providedBy(slot) }
}

/** All plugin folders the host knows, and the available services. */
export class Slots {
  readonly #slots = new Map<string, Slot>()
  readonly #core = new Map<string, unknown>()

  provide(id: string, service: unknown): void {
    this.#core.set(id, service)
  }

  all(): readonly Slot[] {
    return [...this.#slots.values()]
  }
  in(folder: string): Slot | undefined {
    return this.#slots.get(folder)
  }

  add(folder: string): Slot {
    const slot: Slot = {
      folder,
      name: basename(folder),
      state: 'loading',
      definition: undefined,
      config: undefined,
      instance: undefined,
      access: 'declared',
      previous: undefined,
      error: undefined,
      waiting: false,
      reloads: 0,
    }
    this.#slots.set(folder, slot)
    return slot
  }
  forget(slot: Slot): void {
    this.#slots.delete(slot.folder)
  }

  /** The running plugin of this name, else any plugin of this name. */
  find(name: string): Slot | undefined {
    const named = this.all().filter((slot) => slot.name === name)
    return named.find(({ instance }) => instance) ?? named[0]
  }

  /** Running plugins, each after everything it requires. */
  loaded(): readonly Slot[] {
    const running = new Map(
      this.all()
        .filter(({ instance }) => instance)
        .map((slot) => [slot.name, slot]),
    )
    return plan([...running.values()].map(toNode), this.coreIds()).order.flatMap((name) => running.get(name) ?? [])
  }

  /** Running plugins that require a service of this one, directly or indirectly, each after everything it requires. */
  dependents(name: string): readonly Slot[] {
    const loaded = this.loaded()
    const names = new Set(dependentsOf(name, loaded.map(toNode)))
    return loaded.filter((slot) => names.has(slot.name))
  }

  /** A plugin and its dependents. */
  subtree(name: string): readonly string[] {
    return [name, ...this.dependents(name).map((slot) => slot.name)]
  }

  service(id: string): unknown {
    if (this.#core.has(id)) return this.#core.get(id)
    // Called often for optional services, so it creates no list.
    for (const { state, instance } of this.#slots.values())
      if (state === 'loaded' && instance?.services.has(id)) return instance.services.get(id)
    return undefined
  }

  coreIds(): Set<string> {
    return new Set(this.#core.keys())
  }
  /** Ids of the available services. */
  present(): Set<string> {
    const ids = this.coreIds()
    for (const { instance } of this.all()) for (const id of instance?.services.keys() ?? []) ids.add(id)
    return ids
  }

  /**
   * Why services are missing, by id, if a plugin that is not loaded would provide them. `coming` are about to be
   * loaded.
   */
  unavailable(coming: readonly Slot[]): ReadonlyMap<string, string> {
    const missing = this.all().filter((slot) => !slot.instance && !coming.includes(slot))
    return new Map(
      missing.flatMap((slot) =>
        providedBy(slot).map(
          (id) =>
            [id, `plugin "${slot.name}" provides it but is not loaded${slot.error ? `: ${slot.error}` : ''}`] as const,
        ),
      ),
    )
  }
}

/** The error if another plugin already owns a section of the configuration. */
export function findTaken({ sections = {} }: AnyPlugin, slot: Slot, others: readonly Slot[]): string | undefined {
  for (const section of Object.keys(sections)) {
    const owner = others.find((other) => other !== slot && Object.hasOwn(other.definition?.sections ?? {}, section))
    if (owner) return `section [${section}] of the configuration belongs to plugin "${owner.name}"`
  }
  return undefined
}

/** Why setup failed, with the file, line and column of a plugin that does not ship with the daemon. */
export async function setupReason(error: unknown, { access }: Ready, { folder }: Slot): Promise<string> {
  if (access === 'built-in') return reasonOf(error)
  const { setupProblem } = await import('./import-problem.ts')
  return await setupProblem(error, folder)
}

export function reasonOf(error: unknown): string {
  return messageOf(error)
}
