import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import {
  currentActor,
  describeActor,
  ListeningStarting,
  messageOf,
  PluginChanged,
  pluginsLoaded,
  readOwnJson,
  RepeatedWork,
  toIso,
  untilAnswered,
} from 'svc/internal'
import type { Broadcast, Configuration, Daemon, DatabaseSnapshots } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Hooks, Logger, PluginContext, PluginDatabase, Statement, Vault } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { AdoptedSettings } from './adopted.ts'
import { ChangeStore } from './store.ts'
import type { ChangeRow } from './store.ts'

const TOPIC = 'settings.changes'
/** How long a start waits for the server of the database, as with the setup of a plugin. */
const AWAY_MS = 30_000

export interface SharedSettingsDeps extends Pick<PluginContext<object, {}, {}>, 'own' | 'run' | 'leaving'> {
  readonly db: PluginDatabase
  readonly hooks: Hooks
  readonly log: Logger
  readonly vault: Vault
  readonly audit: Audit
  readonly broadcast: Broadcast
  readonly configuration: Configuration
  readonly daemon: Daemon
  readonly snapshots: DatabaseSnapshots
}

/** Gives what is set at this daemon to the others on the database, and adopts what is set there. */
export async function shareSettings(deps: SharedSettingsDeps): Promise<void> {
  const { broadcast, configuration, daemon, hooks, leaving, log, own, run, snapshots } = deps
  const secret = await snapshots.deriveKey('settings-digest')
  if (secret === undefined) throw new Error('the daemons on a database share a key of the vault')
  const settings = new SharedSettings({ ...deps, secret, store: new ChangeStore(deps.db) })
  const adopt = (): void => {
    const work = run(async () => {
      // Only a loaded plugin can check its section.
      await pluginsLoaded(daemon, 'settings', leaving)
      if (!leaving.aborted) await settings.adopt()
    }).catch((error: unknown) => log.warn('what other daemons have set was not adopted', error))
    daemon.trackWork(work)
  }
  const subscription = broadcast.on(TOPIC, { heard: adopt, missed: adopt })
  own('messages', () => subscription[Symbol.dispose]())
  const listener = configuration.onSet(async (key, value) => {
    await settings.share(key, value, broadcast.tell(TOPIC, key))
    // An older change of the same key may be on its way into the file.
    adopt()
  })
  own('settings of this daemon', () => listener[Symbol.dispose]())
  own('warnings', () => daemon.setWarnings('settings', []))
  hooks.on(PluginChanged, ({ change }) => {
    if (settings.hasRefused && (change === 'loaded' || change === 'reloaded')) adopt()
  })
  // A key that was taken back elsewhere must not open this daemon, not even for a moment.
  hooks.on(ListeningStarting, async () => {
    const until = AbortSignal.any([leaving, AbortSignal.timeout(AWAY_MS)])
    try {
      await untilAnswered(
        () => settings.adopt(),
        until,
        (error) => log.warn('the start waits for the database', error),
      )
    } catch (error) {
      if (until.aborted) throw error
      log.warn('what other daemons have set was not adopted', error)
    }
  })
  adopt()
}

interface Deps extends Omit<SharedSettingsDeps, 'own' | 'run' | 'leaving' | 'db' | 'hooks'> {
  readonly store: ChangeStore
  /** For digests of values. */
  readonly secret: Uint8Array
}

class SharedSettings {
  readonly #deps: Deps
  readonly #adopted: AdoptedSettings
  /** By the id of the change, why it was not adopted. */
  #refused = new Map<string, string>()
  readonly #adopting = new RepeatedWork(() => this.#adoptAll())

  constructor(deps: Deps) {
    this.#deps = deps
    this.#adopted = new AdoptedSettings(deps.daemon.config().homeDir)
  }

  get hasRefused(): boolean {
    return this.#refused.size > 0
  }

  /** Durable, and told to the others, when it settles. */
  async share(key: string, value: unknown, tell: readonly Statement[]): Promise<void> {
    const { configuration, store, vault } = this.#deps
    if (await configuration.isOfMachine(key)) return
    const actor = currentActor()
    const change = {
      key,
      id: randomUUID(),
      daemon: String(configuration.shown('plugins.cluster.name') ?? hostname()),
      changed_by: actor ? describeActor(actor) : 'svc',
      changed_at: toIso(Date.now()),
    }
    await vault.write(valueName(key), JSON.stringify(value), [store.put(change), ...tell])
    await this.#adopted.put(key, change.id, await this.#digest(key))
  }

  /** Adopts what this home has not adopted yet, in the order in which it was set. */
  adopt(): Promise<void> {
    return this.#adopting.run()
  }
  async #adoptAll(): Promise<void> {
    const { daemon, store } = this.#deps
    const refused = new Map<string, string>()
    const editedAt = await this.#editedAt()
    for (const change of await store.list()) {
      const why = await this.#adoptOne(change, editedAt)
      if (why !== undefined) refused.set(change.id, `${change.key} was set at ${change.daemon}, but not here: ${why}`)
    }
    for (const [id, text] of refused) if (this.#refused.get(id) !== text) this.#deps.log.warn(text)
    this.#refused = refused
    daemon.setWarnings('settings', [...refused.values()])
  }

  /** Why it could not be adopted. */
  async #adoptOne(change: ChangeRow, editedAt: number): Promise<string | undefined> {
    const { audit, configuration, log, vault } = this.#deps
    const { key, id } = change
    const last = await this.#adopted.find(key)
    if (last?.change === id) return undefined
    if (last && editedAt > Date.parse(change.changed_at) && last.digest !== (await this.#digest(key))) {
      log.warn(`${key} stays as config.toml of this home says: it was edited after it was set at ${change.daemon}`)
      await this.#adopted.put(key, id, await this.#digest(key))
      return undefined
    }
    try {
      const value = readOwnJson((await vault.read(valueName(key))) ?? 'null')
      if (await configuration.isOfMachine(key)) return 'it is set at each daemon for itself'
      // A row may do what a request may, and nothing else.
      await configuration.check(key, value)
      await audit.write({
        event: 'config_change',
        details: `configuration: ${key} adopted, set at ${change.daemon} by ${change.changed_by}`,
        change: {
          before: { [key]: configuration.shown(key) },
          after: { [key]: configuration.shown(key, value) },
        },
      })
      await configuration.adopt(key, value)
    } catch (error) {
      if (error instanceof Refusal && error.code === 'service_unavailable') throw error
      return messageOf(error)
    }
    await this.#adopted.put(key, id, await this.#digest(key))
    return undefined
  }

  /** Of the value in force. */
  async #digest(key: string): Promise<string> {
    const digests = await this.#deps.configuration.digests(this.#deps.secret)
    return [...digests]
      .filter(([name]) => name === key || name.startsWith(`${key}.`))
      .map(([, digest]) => digest)
      .join()
  }
  /** When `config.toml` was written last; 0 where there is none. */
  async #editedAt(): Promise<number> {
    const { homeDir } = this.#deps.daemon.config()
    const found = await stat(join(homeDir, 'config.toml')).catch(() => undefined /* there is none */)
    return found?.mtimeMs ?? 0
  }
}

const valueName = (key: string): string => `value ${key}`
