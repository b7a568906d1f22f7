import { createHmac, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import { v7, validate, version } from 'uuid'
import * as v from 'valibot'
import { messageOf } from '../errors/message.ts'
import type { Logger } from '../log/logger.ts'
import { canonicalJson } from '../schema/object.ts'
import { toIso } from '../scope/clock.ts'
import { KeyedQueue } from '../scope/queue.ts'
import type { TellChange } from '../storage/changes-elsewhere.ts'
import type { Statement } from '../storage/database.ts'
import { hashOfFiles } from './hash-of-files.ts'
import { HomeRecord } from './home-record.ts'
import { InstalledFolders } from './installed-folders.ts'
import type { Placement } from './installed-folders.ts'
import type { ArchivedFile } from './read-archive.ts'

/** What the database says of a folder that was installed, or removed since. */
export interface SharedFolder {
  readonly name: string
  /** Another one with each installation and removal. */
  readonly revision: string
  readonly state: 'installed' | 'removed'
  readonly files_sha256: string
  /** An authentication code: who can write rows only cannot install anything. */
  readonly mac: string
  /** ISO 8601 UTC. */
  readonly updated_at: string
}
/** The rows of a plugin, with columns of its own. */
export interface SharedFolderStore<A extends object> {
  all(): Promise<readonly (SharedFolder & A)[]>
  find(name: string): Promise<(SharedFolder & A) | undefined>
  files(name: string): Promise<readonly ArchivedFile[]>
  /** `files` take the place of those before. */
  put(row: SharedFolder & A, files: readonly ArchivedFile[]): readonly Statement[]
  commit(statements: readonly Statement[]): Promise<unknown>
}
export interface SharedFoldersDeps<A extends object> {
  /** What such a folder is, for messages: `skill`. */
  readonly what: string
  readonly home: string
  /** The folder of the home that holds them: `skills`. */
  readonly folder: string
  readonly store: SharedFolderStore<A>
  /** A key of the vault; `undefined` while it has none. */
  readonly key: () => Promise<Uint8Array | undefined>
  /** What of the columns of the plugin the code proves. */
  readonly proven?: (about: A) => Readonly<Record<string, unknown>>
  /** Tells other daemons on the database. */
  readonly tell: TellChange
  /** Tells the operator what was not adopted, and why. */
  readonly warn: (texts: readonly string[]) => void
  readonly log: Pick<Logger, 'error' | 'info'>
}

const OLDER =
  'this home has a later change and keeps it. The database was restored from a dump, or the row was put back: ' +
  'install or uninstall it again at any daemon'
const NO_KEY = new Uint8Array()
const Adopted = v.object({
  /** Of its row. One that is not later is not adopted any more. */
  revision: v.string(),
})

/**
 * Folders of a home that are the same at every daemon on the database: a row says what is installed, and each daemon
 * follows it. A folder that somebody made by hand is left as it is.
 */
export class SharedFolders<A extends object> {
  readonly #deps: SharedFoldersDeps<A>
  readonly #folders: InstalledFolders
  /** The last change of each that this home has made or adopted. */
  readonly #adopted: HomeRecord<typeof Adopted>
  readonly #queue = new KeyedQueue()
  /** By name, why one is not as in the database. */
  readonly #refused = new Map<string, string>()
  constructor(deps: SharedFoldersDeps<A>) {
    this.#deps = deps
    this.#folders = new InstalledFolders(join(deps.home, deps.folder))
    this.#adopted = new HomeRecord(deps.home, `shared-${deps.folder}.json`, Adopted)
  }

  /** Work that looks at a folder and then changes it: one after the other for each name. */
  inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run(name, work)
  }

  /** Puts files in place, with `statements` in the same batch; the folder is as before when that fails. */
  async put(name: string, about: A, files: readonly ArchivedFile[], statements: readonly Statement[]): Promise<void> {
    const row = await this.#seal({ name, state: 'installed', files_sha256: hashOfFiles(files) }, about)
    const placement = await this.#folders.place(name, files, row.revision)
    await this.#commit(placement, [...this.#deps.store.put(row, files), ...statements], name)
    await this.#remember(row)
  }
  /** Takes one away, with `statements` in the same batch; it comes back when that fails. `about`: what its row says. */
  async remove(name: string, about: A | undefined, statements: readonly Statement[]): Promise<void> {
    const placement = await this.#folders.remove(name)
    const row = about && (await this.#seal({ name, state: 'removed', files_sha256: '' }, about))
    await this.#commit(placement, [...(row ? this.#deps.store.put(row, []) : []), ...statements], name)
    if (row) await this.#remember(row)
  }

  /** Makes the folders what the database says: after a crash, and after a change by another daemon. */
  async reconcile(): Promise<void> {
    await this.#folders.recover()
    const rows = await this.#deps.store.all()
    const key = rows.length === 0 ? NO_KEY : await this.#key()
    for (const { name } of rows) {
      const problem = await this.#queue
        .run(name, () => this.#adopt(name, key))
        .catch((error: unknown) => `it is not as in the database: ${messageOf(error)}`)
      this.#note(name, problem)
    }
  }

  /** Tells the operator, once. */
  #note(name: string, problem: string | undefined): void {
    const { log, warn, what } = this.#deps
    if (problem === this.#refused.get(name)) return
    if (problem === undefined) this.#refused.delete(name)
    else {
      this.#refused.set(name, problem)
      log.error(`${what} "${name}": ${problem}`)
    }
    warn([...this.#refused].map(([each, why]) => `${what} "${each}": ${why}`))
  }

  /** Why it was not adopted. */
  async #adopt(name: string, key: Uint8Array): Promise<string | undefined> {
    const { log, store, what } = this.#deps
    const row = await store.find(name)
    if (!row) return undefined
    const { revision, state } = row
    const here = await this.#folders.revision(name)
    const isByHand = here === undefined && (await this.#folders.names()).includes(name)
    if (isByHand) return undefined
    if (!this.#isOwn(row, key)) return 'its row was not written by a daemon on this database: it is ignored'
    if (here !== revision && (await this.#isOlder(name, revision))) return OLDER
    if (state === 'removed') {
      if (here !== undefined) await (await this.#folders.remove(name)).finish()
    } else if (here !== revision) {
      const files = await store.files(name)
      // Another daemon is writing it anew, and tells of that.
      if (hashOfFiles(files) !== row.files_sha256) return undefined
      await (await this.#folders.place(name, files, revision)).finish()
      log.info(`${what} "${name}" is now as in the database`)
    }
    if (!(await this.#isOlder(name, revision))) await this.#remember(row)
    return undefined
  }
  async #remember({ name, revision }: SharedFolder): Promise<void> {
    this.#note(name, undefined)
    if ((await this.#adopted.find(name))?.revision !== revision) await this.#adopted.put(name, { revision })
  }
  async #commit(placement: Placement, statements: readonly Statement[], name: string): Promise<void> {
    try {
      await this.#deps.store.commit([...statements, ...this.#deps.tell(name)])
    } catch (error) {
      await placement.undo()
      throw error
    }
    await placement.finish()
  }

  /** Whether this home has a later change of it, or another one of the same time. */
  async #isOlder(name: string, revision: string): Promise<boolean> {
    const last = await this.#adopted.find(name)
    return last !== undefined && last.revision !== revision && timeOf(revision) <= timeOf(last.revision)
  }
  async #seal(row: Pick<SharedFolder, 'name' | 'state' | 'files_sha256'>, about: A): Promise<SharedFolder & A> {
    const rows = await this.#deps.store.all()
    const key = await this.#key()
    const own = rows.filter((each) => this.#isOwn(each, key))
    const known = [...own, ...(await this.#adopted.all()).values()].map(({ revision }) => revision)
    // Later than all that this home knows, whatever its clock says.
    const revision = v7({ msecs: Math.max(Date.now(), ...known.map((each) => timeOf(each) + 1)) })
    const fresh = { ...about, ...row, revision, updated_at: toIso(Date.now()), mac: '' }
    return { ...fresh, mac: this.#mac(fresh, key) }
  }
  #isOwn(row: SharedFolder & A, key: Uint8Array): boolean {
    const [given, own] = [Buffer.from(row.mac), Buffer.from(this.#mac(row, key))]
    return given.length === own.length && timingSafeEqual(given, own)
  }
  #mac(row: SharedFolder & A, key: Uint8Array): string {
    const { name, revision, state, files_sha256: files } = row
    const facts = { name, revision, state, files, ...this.#deps.proven?.(row) }
    return createHmac('sha256', key).update(canonicalJson(facts)).digest('hex')
  }
  /** Read once for all rows that are looked at: it is a file, or a command. */
  async #key(): Promise<Uint8Array> {
    return (await this.#deps.key()) ?? NO_KEY
  }
}

/** Milliseconds since 1970; 0 for a revision of the version before, which says nothing of time. */
function timeOf(revision: string): number {
  return validate(revision) && version(revision) === 7
    ? Number.parseInt(revision.replaceAll('-', '').slice(0, 12), 16)
    : 0
}
