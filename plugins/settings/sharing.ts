import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import {
  currentActor,
  describeActor,
  isNotHeld,
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
/** Daemons that set something at the same moment take a number one after the other. */
const MAX_TRIES = 20

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
  const macSecret = await snapshots.deriveKey('settings-change')
  if (secret === undefined || macSecret === undefined)
    throw new Error('the daemons on a database share a key of the vault')
  const settings = new SharedSettings({ ...deps, secret, macSecret, store: new ChangeStore(deps.db, log) })
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

const OLDER =
  'this home has a later change and keeps it. The database was restored from a dump, or the row was put back: ' +
  'set it again at any daemon'
const NOT_PROVEN =
  'the row was written by a daemon of the version before, or by none: set it again at a daemon of this version'

interface Deps extends Omit<SharedSettingsDeps, 'own' | 'run' | 'leaving' | 'db' | 'hooks'> {
  readonly store: ChangeStore
  /** For digests of values. */
  readonly secret: Uint8Array
  /** For codes of changes. */
  readonly macSecret: Uint8Array
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
    const about = {
      key,
      id: randomUUID(),
      daemon: String(configuration.shown('plugins.cluster.name') ?? hostname()),
      changed_by: actor ? describeActor(actor) : 'svc',
      changed_at: toIso(Date.now()),
    }
    const text = JSON.stringify(value)
    for (let tries = 1; ; tries++) {
      const last = await store.last()
      // The clock is in it, so that it is above all that came before, also when the database was restored from a dump.
      const number = Math.max(last, await this.#adopted.highest(), Date.now()) + 1
      const change = { ...about, number }
      const mac = this.#mac(change, text).toString('base64url')
      try {
        await vault.write(valueName(key), text, [...store.put({ ...change, mac }, last), ...tell])
      } catch (error) {
        if (tries === MAX_TRIES || !(error instanceof Refusal) || !isNotHeld(error.cause)) throw error
        continue
      }
      return await this.#adopted.put(key, { change: about.id, digest: await this.#digest(key), number })
    }
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
    const { key, id, number } = change
    const last = await this.#adopted.find(key)
    if (last?.change === id) {
      if (last.number === undefined) await this.#adopted.put(key, { ...last, number })
      return undefined
    }
    if (last?.number !== undefined && number <= last.number) return await this.#unlessReplaced(change, OLDER)
    try {
      const text = (await vault.read(valueName(key))) ?? 'null'
      if (!this.#isProven(change, text)) return await this.#unlessReplaced(change, NOT_PROVEN)
      if (last && editedAt > Date.parse(change.changed_at) && last.digest !== (await this.#digest(key))) {
        log.warn(`${key} stays as config.toml of this home says: it was edited after it was set at ${change.daemon}`)
      } else {
        const value = readOwnJson(text)
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
      }
      await this.#adopted.put(key, { change: id, digest: await this.#digest(key), number })
      return undefined
    } catch (error) {
      if (error instanceof Refusal && error.code === 'service_unavailable') throw error
      return messageOf(error)
    }
  }
  /** Nothing when a later one was made since the change was read: it is told of, and adopted next. */
  async #unlessReplaced({ key, id }: ChangeRow, why: string): Promise<string | undefined> {
    return (await this.#deps.store.find(key))?.id === id ? why : undefined
  }

  #isProven(change: ChangeRow, text: string): boolean {
    const given = Buffer.from(change.mac ?? '', 'base64url')
    const own = this.#mac(change, text)
    return given.length === own.length && timingSafeEqual(given, own)
  }
  /** Covers what makes a change unique, and its order: neither can be put on another value. */
  #mac({ key, id, number, daemon, changed_by: by, changed_at: at }: Omit<ChangeRow, 'mac'>, text: string): Buffer {
    const about = JSON.stringify([key, id, number, daemon, by, at, text])
    return createHmac('sha256', this.#deps.macSecret).update(about).digest()
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
