import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import { currentActor, describeActor, messageOf, RepeatedWork, toIso } from 'svc/internal'
import type { Broadcast } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import type { Cluster, MemberProblem } from '../../cluster/contract.ts'
import { exists } from '../install/folders.ts'
import type { Settings } from '../settings.ts'
import type { AdoptedChanges } from './adopted.ts'
import { sha256 } from './archive.ts'
import { TOPIC } from './follow.ts'
import type { Outcome, PluginChange, SharedStore } from './store.ts'

export interface Adopter {
  /**
   * As a request of this daemon's operator would install it. Resolves to whether it did: not when the change is no longer
   * current once it is its turn. Throws refusals.
   */
  install(change: PluginChange, archive: () => Promise<Uint8Array>, isCurrent: () => Promise<boolean>): Promise<boolean>
  /** As `install`; nothing is done when the plugin is not there. */
  remove(change: PluginChange, isCurrent: () => Promise<boolean>): Promise<boolean>
}

/** A daemon on the database, and what has come of a change there. */
export interface Follower {
  readonly name: string
  /** Whether it is this one. */
  readonly self: boolean
  readonly state: Outcome['outcome'] | 'waiting' | 'apart'
  readonly reason: string
}

export interface PluginSharingDeps {
  readonly store: SharedStore
  readonly adopted: AdoptedChanges
  readonly broadcast: Broadcast
  readonly cluster: Cluster
  readonly settings: Pick<Settings, 'adopt'>
  /** The folder of installed plugins. */
  readonly plugins: string
  /** Id of the home. */
  readonly home: string
  /** What this daemon is called. */
  readonly daemon: string
  /** That all daemons on the database have, and nobody else. */
  readonly secret: Uint8Array
  readonly adopter: () => Promise<Adopter>
  readonly log: Logger
}

const OLDER =
  'this home has a later change and keeps it. The database was restored from a dump, or the row was put back: ' +
  'install or remove it again at any daemon'

/**
 * What is installed or removed at one daemon, installed or removed at the others on the database: at one after the
 * other, so that a plugin that fails does so at one of them. The last change of each plugin is a row, with its archive.
 */
export class PluginSharing {
  readonly #deps: PluginSharingDeps
  readonly #adopting = new RepeatedWork(() => this.#adoptAll())
  /** Changes that were done, refused or have failed here: tried again when the plugin starts anew. */
  readonly #tried = new Set<string>()
  #isBehind = false
  constructor(deps: PluginSharingDeps) {
    this.#deps = deps
  }

  /** This daemon has installed it: the others are to. Durable when it settles. */
  async installed(
    plugin: Pick<PluginChange, 'name' | 'version' | 'source' | 'signature' | 'permissions'>,
    archive: Uint8Array,
  ): Promise<void> {
    const size = { sha256: sha256(archive), size_bytes: archive.length }
    await this.#publish({ ...(await this.#stamp()), ...plugin, ...size, action: 'install', force: false }, archive)
  }
  /** This daemon has removed it: the others are to. Durable when it settles. */
  async removed(plugin: Pick<PluginChange, 'name' | 'version' | 'force'>): Promise<void> {
    const none = { source: '', sha256: '', size_bytes: 0, signature: null, permissions: [] }
    await this.#publish({ ...(await this.#stamp()), ...none, ...plugin, action: 'remove' }, new Uint8Array())
  }

  /** Throws `conflict` while another daemon has the plugin: its data is that of all. */
  async refuseInUse(name: string): Promise<void> {
    const [members, outcomes] = await Promise.all([this.#deps.cluster.members(), this.#deps.store.outcomes()])
    const changes = new Map((await this.#changes()).map((change) => [change.id, change]))
    const others = outcomes.filter(
      ({ home, name: plugin, change_id: id, outcome }) =>
        plugin === name &&
        home !== this.#deps.home &&
        members.some(({ homeId }) => homeId === home) &&
        !(outcome === 'done' && changes.get(id)?.action === 'remove'),
    )
    if (others.length === 0) return
    const where = others.map(({ daemon }) => daemon).join(', ')
    throw new Refusal(
      'conflict',
      `Other daemons still have plugin "${name}" (${where}), and its data is that of all: remove it without ` +
        'delete_data, and delete its data once it is gone there',
    )
  }

  /** What was not done, of all daemons. */
  async problems(): Promise<readonly MemberProblem[]> {
    const changes = new Map((await this.#changes()).map((change) => [change.id, change]))
    return (await this.#deps.store.outcomes()).flatMap(({ home, change_id: id, outcome, reason }) => {
      const change = changes.get(id)
      if (outcome === 'done' || !change) return []
      if (outcome === 'unknown')
        return { owner: home, text: `plugin "${change.name}": what came of it there cannot be read here` }
      const what = change.action === 'install' ? `${change.version} was not installed` : 'was not removed'
      return { owner: home, text: `plugin "${change.name}" ${what}: ${reason}` }
    })
  }

  /** What has come of the last change of a plugin at each daemon; of none that they share, `apart`. */
  async followers(name: string): Promise<readonly Follower[]> {
    const { cluster, store } = this.#deps
    const change = (await this.#changes()).find((one) => one.name === name)
    const [members, outcomes] = await Promise.all([cluster.members(), store.outcomes()])
    return members.map(({ id, homeId, name: daemon }) => {
      const own = outcomes.find((one) => one.home === homeId && one.name === name && one.change_id === change?.id)
      const state = change ? (own?.outcome ?? 'waiting') : 'apart'
      return { name: daemon, self: id === cluster.self, state, reason: own?.reason ?? '' }
    })
  }

  /** What this daemon was to install or remove, and could not. What its own file does not permit is no failure. */
  async ownFailures(): Promise<readonly string[]> {
    const failed = (await this.#deps.store.outcomes()).filter(
      (one) => this.#isOwn(one) && (one.outcome === 'failed' || one.outcome === 'stopped'),
    )
    if (failed.length === 0) return []
    const current = new Set((await this.#changes()).map(({ id }) => id))
    return failed
      .filter(({ change_id: id }) => current.has(id))
      .map(({ name, reason }) => `"${name}" is not as in the others: ${reason}`)
  }

  /** Does here what was done elsewhere and not here yet. */
  adopt(): Promise<void> {
    return this.#adopting.run()
  }
  /** Whether something was left for later, because it is the turn of another daemon. It tells when its turn has ended. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  async #adoptAll(): Promise<void> {
    this.#isBehind = false
    const own = new Map((await this.#deps.store.outcomes()).filter(this.#isOwn).map((one) => [one.name, one]))
    for (const change of await this.#changes()) {
      const known = own.get(change.name)
      if (await this.#isOlder(change)) {
        await this.#refuseOlder(change, known)
        continue
      }
      if (await this.#isDone(change, known)) continue
      if (await this.#adoptOne(change, known)) continue
      this.#isBehind = true
      break
    }
  }
  /** Whether this home has a later change: the row was put back, or the database restored from a dump. */
  async #isOlder({ id, name, changed_at: at }: PluginChange): Promise<boolean> {
    const last = await this.#deps.adopted.find(name)
    if (!last || last.change === id || Date.parse(at) > Date.parse(last.changed_at)) return false
    return await this.#isCurrent({ id })
  }
  /** Not when it was replaced since it was read. */
  async #isCurrent({ id }: Pick<PluginChange, 'id'>): Promise<boolean> {
    return (await this.#changes()).some((change) => change.id === id)
  }
  async #refuseOlder(change: PluginChange, known: Outcome | undefined): Promise<void> {
    const { log, store } = this.#deps
    if (known?.change_id === change.id && known.reason === OLDER) return
    log.warn(`plugin "${change.name}": not ${describe(change)}: ${OLDER}`)
    await store.batch([store.setOutcome(this.#outcome(change, 'refused', OLDER))])
  }
  async #isDone(change: PluginChange, known: Outcome | undefined): Promise<boolean> {
    const { action, id, name } = change
    if (this.#tried.has(id)) return true
    if (known?.change_id !== id) return false
    const isDone = known.outcome === 'done'
    const last = await this.#deps.adopted.find(name)
    if (!isDone && !(known.outcome === 'unknown' && last?.change === id)) return false
    // A home that was lost has the id of the one before and none of its files.
    if (action === 'install' && !(await exists(join(this.#deps.plugins, name)))) return false
    // The version before did not keep it.
    if (!last) await this.#deps.adopted.put(name, toAdopted(change))
    return true
  }

  /** Whether this daemon is to go on: not when it is the turn of another, which tells when it has ended. */
  async #adoptOne(change: PluginChange, known: Outcome | undefined): Promise<boolean> {
    const { cluster, plugins, settings, store } = this.#deps
    if (change.action === 'remove' && !(await exists(join(plugins, change.name)))) {
      await this.#end(change, 'done', '')
      return true
    }
    if (!settings.adopt) {
      this.#tried.add(change.id)
      await this.#end(change, 'refused', 'plugins.plugin-admin.adopt is false in the configuration of this home')
      return true
    }
    const failure = await this.#failureElsewhere(change)
    if (failure !== undefined) {
      const isKnown = known?.change_id === change.id && known.reason === failure
      if (!isKnown) await store.batch([store.setOutcome(this.#outcome(change, 'stopped', failure))])
      return true
    }
    if (!(await this.#takeTurn())) return false
    this.#tried.add(change.id)
    const result = await this.#perform(change)
    // Another one took its place before the turn came: it would be undone.
    if (!result) await store.batch([store.endTurn(cluster.self), ...this.#tell()])
    else await this.#end(change, ...result, [store.endTurn(cluster.self)])
    return true
  }
  /** `undefined` when another change has taken its place. */
  async #perform(change: PluginChange): Promise<readonly [outcome: Outcome['outcome'], reason: string] | undefined> {
    const { log } = this.#deps
    const isCurrent = (): Promise<boolean> => this.#isCurrent(change)
    try {
      const adopter = await this.#deps.adopter()
      const isDone =
        change.action === 'remove'
          ? await adopter.remove(change, isCurrent)
          : await adopter.install(change, () => this.#archive(change), isCurrent)
      if (!isDone) return undefined
      log.info(`plugin "${change.name}": ${describe(change)}`)
      return ['done', '']
    } catch (error) {
      log.warn(`plugin "${change.name}" was not taken over: ${describe(change)}`, error)
      return [isRefused(error) ? 'refused' : 'failed', messageOf(error)]
    }
  }

  async #archive(change: PluginChange): Promise<Uint8Array> {
    const archive = await this.#deps.store.archive(change)
    if (archive) return archive
    throw new Refusal('conflict', 'its archive in the database is not whole, or is another one by now')
  }

  async #failureElsewhere({ id }: PluginChange): Promise<string | undefined> {
    const { cluster, home, store } = this.#deps
    const failed = (await store.outcomes()).filter(
      (one) => one.change_id === id && one.outcome === 'failed' && one.home !== home,
    )
    if (failed.length === 0) return undefined
    const alive = new Set((await cluster.members()).map(({ homeId }) => homeId))
    const first = failed.find((one) => alive.has(one.home))
    return first && `it failed at ${first.daemon}: ${first.reason}`
  }

  async #takeTurn(): Promise<boolean> {
    const { cluster, store } = this.#deps
    const holder = await store.holder()
    const isFree = holder === undefined || holder === cluster.self
    if (!isFree && cluster.isAlive(holder)) return false
    try {
      const taken = await store.batch([
        ...cluster.fence(),
        ...(isFree ? [] : cluster.unlessAlive(holder)),
        store.takeTurn(cluster.self, holder),
      ])
      return (taken.at(-1)?.changes ?? 0) > 0
    } catch (error) {
      if (error instanceof Refusal) return false
      throw error
    }
  }

  /** The others may wait for it, or are to stop because of it. */
  async #end(
    change: PluginChange,
    outcome: Outcome['outcome'],
    reason: string,
    more: readonly Statement[] = [],
  ): Promise<void> {
    const { adopted, store } = this.#deps
    if (outcome === 'done') await adopted.put(change.name, toAdopted(change))
    await store.batch([store.setOutcome(this.#outcome(change, outcome, reason)), ...more, ...this.#tell()])
  }
  readonly #isOwn = ({ home }: Outcome): boolean => home === this.#deps.home
  #outcome({ name, id }: PluginChange, outcome: Outcome['outcome'], reason: string): Outcome {
    const { daemon, home } = this.#deps
    return { home, daemon, name, change_id: id, outcome, reason }
  }

  async #publish(change: PluginChange, archive: Uint8Array): Promise<void> {
    const { store } = this.#deps
    const about = JSON.stringify(change)
    try {
      await store.batch([
        ...store.put({ name: change.name, about, mac: this.#mac(about).toString('base64url') }, archive),
        store.setOutcome(this.#outcome(change, 'done', '')),
        ...this.#tell(),
      ])
      await this.#deps.adopted.put(change.name, toAdopted(change))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const done = change.action === 'install' ? 'installed' : 'removed'
      const text = `Plugin "${change.name}" is ${done} at this daemon, and the others were not told: ${error.message}`
      throw new Refusal(error.code, text, { cause: error })
    }
  }
  async #stamp() {
    const actor = currentActor()
    const times = (await this.#changes()).map((change) => Date.parse(change.changed_at))
    // Later than all before it, whatever clocks say: the others adopt nothing that is not.
    const changedAt = Math.max(Date.now(), ...[await this.#deps.adopted.latest(), ...times].map((time) => time + 1))
    return {
      id: randomUUID(),
      daemon: this.#deps.daemon,
      changed_by: actor ? describeActor(actor) : 'svc',
      changed_at: toIso(changedAt),
    }
  }
  #tell(): readonly Statement[] {
    return this.#deps.broadcast.tell(TOPIC, {})
  }

  /** Those that a daemon on this database has written. */
  async #changes(): Promise<readonly PluginChange[]> {
    const { log, store } = this.#deps
    return (await store.changes()).flatMap((row) => {
      const given = Buffer.from(row.mac, 'base64url')
      const own = this.#mac(row.about)
      if (given.length === own.length && timingSafeEqual(given, own)) return store.read(row) ?? []
      log.error(`the row of plugin "${row.name}" was not written by a daemon on this database: it is ignored`)
      return []
    })
  }
  #mac(about: string): Buffer {
    return createHmac('sha256', this.#deps.secret).update(about).digest()
  }
}

const toAdopted = ({ id, changed_at }: PluginChange) => ({ change: id, changed_at })
function describe({ action, version, source, daemon, changed_by: by }: PluginChange): string {
  const what = action === 'install' ? `${version} from ${source} installed` : 'removed'
  return `${what}, as at ${daemon} by ${by}`
}

/** What this home does not permit, or has no room for; anything else is a failure, at which the others stop. */
function isRefused(error: unknown): boolean {
  if (!(error instanceof Refusal)) return false
  const { code, details } = error
  return code === 'forbidden' || code === 'payload_too_large' || (code === 'conflict' && !isRolledBack(details))
}
const isRolledBack = (details: unknown): boolean =>
  typeof details === 'object' && details !== null && 'rolled_back' in details
