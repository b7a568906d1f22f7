import { commandLine } from '../process/command-name.ts'
import { StartRefused } from '../errors/start-refused.ts'
import { isServerAway } from '../storage/failure.ts'
import { NewerDatabase } from '../storage/migrate.ts'
import { untilAnswered } from '../storage/until-answered.ts'
import type { ChangeRecord } from './change-record.ts'
import { requiredIds } from './definition.ts'
import { plan } from './graph.ts'
import type { HostDeps } from './host-deps.ts'
import { mount } from './instance.ts'
import type { Instance } from './instance.ts'
import { providedBy, reasonOf, requiredBy, setupReason, toNode } from './slot.ts'
import type { Ready, Slot, Slots } from './slot.ts'

/** How long a plugin that is being set up waits for the server of the database. */
const AWAY_MS = 30_000

/** Sets plugins up whose definition and configuration were read, and takes them down. */
export class PluginLifecycle {
  readonly #deps: HostDeps
  readonly #slots: Slots
  readonly #changes: ChangeRecord
  constructor(deps: HostDeps, slots: Slots, changes: ChangeRecord) {
    this.#deps = deps
    this.#slots = slots
    this.#changes = changes
  }

  /** Retries plugins that waited for a service, or failed with one, of the changed plugin. */
  async bringUpWaiting(changed: Slot): Promise<void> {
    const concerned = this.#slots
      .all()
      .filter(
        (slot) =>
          slot.state === 'failed' &&
          slot.definition &&
          slot.config !== undefined &&
          (slot.waiting || requiredBy(slot).some((id) => providedBy(changed).includes(id))),
      )
    const ready = new Set(plan(concerned.map(toNode), this.#slots.present()).order)
    const coming = concerned.filter((slot) => ready.has(slot.name))
    if (coming.length > 0) await this.bringUp(coming)
  }

  /**
   * Sets plugins up in dependency order. A failure is stored in the status of the plugin and its dependents. Returns the
   * error of one that waited in vain for the server of the database.
   */
  async bringUp(slots: readonly Slot[]): Promise<unknown> {
    const byName = new Map(slots.map((slot) => [slot.name, slot]))
    const { order, refused } = plan(slots.map(toNode), this.#slots.present(), this.#slots.unavailable(slots))
    for (const [name, reason] of refused) {
      const slot = byName.get(name)
      if (slot) this.#changes.fail(slot, reason, true)
    }
    const coming = order.flatMap((name) => byName.get(name) ?? [])
    for (const slot of coming) slot.state = 'loading'
    let away = await this.#migrate(coming)
    for (const slot of coming) {
      if (slot.state !== 'loading' || !slot.definition || !slot.config) continue
      const lacking = requiredIds(slot.definition).find((id) => !this.#slots.present().has(id))
      if (lacking !== undefined)
        this.#changes.fail(
          slot,
          `needs service "${lacking}": ${this.#slots.unavailable([slot]).get(lacking) ?? 'no plugin provides it'}`,
          true,
        )
      else
        away ??= await this.#trySetUp(slot, {
          definition: slot.definition,
          config: slot.config,
          access: slot.access,
        })
    }
    return away
  }

  async #trySetUp(slot: Slot, ready: Ready): Promise<unknown> {
    try {
      await this.#whenAnswered(slot, () => this.setUp(slot, ready))
      return undefined
    } catch (error) {
      this.#changes.fail(slot, `setup failed: ${await setupReason(error, ready, slot)}`)
      return isServerAway(error) || error instanceof StartRefused ? error : undefined
    }
  }
  /** A server of the database that is away for a moment fails no plugin: nobody would load it when it is back. */
  async #whenAnswered(slot: Slot, work: () => Promise<unknown>): Promise<unknown> {
    try {
      return await work()
    } catch (error) {
      if (!isServerAway(error)) throw error
      this.#deps.log.warn(`plugin "${slot.name}" waits for the database: ${reasonOf(error)}`)
    }
    return untilAnswered(work, AbortSignal.timeout(AWAY_MS))
  }

  async #migrate(slots: readonly Slot[]): Promise<unknown> {
    const pending = slots.flatMap((slot) =>
      slot.definition?.migrations ? [{ slot, name: slot.name, migrations: slot.definition.migrations }] : [],
    )
    if (pending.length === 0) return undefined
    let away: unknown
    await this.#deps.beforeMigrations(pending)
    // In parallel, so that the tables of all plugins need few syncs on a first start.
    await Promise.all(
      pending.map(async ({ slot, name, migrations }) => {
        try {
          await this.#whenAnswered(slot, () =>
            this.#deps.migrate(name, migrations, { strict: true, ownTables: slot.access === 'declared' }),
          )
        } catch (error) {
          if (isServerAway(error)) away = error
          const way = error instanceof NewerDatabase ? ` with ${commandLine('restore <backup.zip>')}` : ''
          this.#changes.fail(slot, `its tables could not be prepared: ${reasonOf(error)}${way}`)
        }
      }),
    )
    return away
  }

  /** Runs the setup of a plugin whose requirements run. Throws what setup throws; then the slot has no instance. */
  async setUp(slot: Slot, { definition, config, access }: Ready): Promise<void> {
    const { log, members, restrict, setupMs, drainMs } = this.#deps
    slot.state = 'loading'
    const instance = await mount(definition, config, {
      log,
      members,
      access,
      restrict,
      find: (id) => this.#slots.service(id),
      setupMs,
      drainMs: drainMs(),
    })
    Object.assign(slot, {
      definition,
      config,
      access,
      instance,
      state: 'loaded',
      error: undefined,
      waiting: false,
    } satisfies Partial<Slot>)
  }

  /** Closes the running copy. Returns, and logs, what could not be closed; the plugin is unloaded in any case. */
  async takeDown(slot: Slot): Promise<string | undefined> {
    const { instance } = slot
    if (!instance) return undefined
    slot.state = 'unloading'
    try {
      await instance.scope.close(this.#deps.drainMs())
      return this.#reportLeftovers(slot, instance)
    } catch (error) {
      const reasons = error instanceof AggregateError ? error.errors.map(reasonOf) : [reasonOf(error)]
      const reason = `did not unload cleanly: ${reasons.join('; ')}`
      this.#deps.log.error(`plugin "${slot.name}" ${reason}`)
      return reason
    } finally {
      slot.instance = undefined
    }
  }

  /** What a plugin made without its context stays in the process until it ends by itself. */
  #reportLeftovers({ name }: Slot, { leftovers }: Instance): string | undefined {
    const left = leftovers?.list() ?? []
    if (left.length === 0) return undefined
    const reason = `left behind ${left.join(', ')}: pass what ends it to ctx.own`
    this.#deps.log.warn(`plugin "${name}" ${reason}`)
    return reason
  }
}
