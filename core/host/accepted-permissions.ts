import { readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import * as v from 'valibot'
import { commandLine } from '../process/command-name.ts'
import { readOwnJson } from '../schema/nesting.ts'
import { SerialQueue } from '../scope/queue.ts'
import type { KeyValueStorage } from '../storage/key-value.ts'
import { defineService } from './define.ts'
import type { EntriesByFolder, PermissionRecord, ReadEntries } from './permission-record.ts'

export type AcceptedPermissions = PermissionRecord
export const AcceptedPermissions = defineService<AcceptedPermissions>()('accepted-permissions')

const FILE = 'accepted-permissions.json'
const INSTALLED = 'installed_plugins'
const Entries = v.record(v.string(), v.array(v.string()))

/**
 * The database keeps which folders were installed: a lost file must not turn them into plugins of the operator. Where
 * several daemons use it, for each home by itself.
 */
export class AcceptedPermissionsFile implements AcceptedPermissions {
  readonly #home: string
  readonly #path: string
  readonly #writes = new SerialQueue()
  #installed: ReadonlySet<string> | undefined
  #storage: KeyValueStorage | undefined
  #key = INSTALLED

  constructor(home: string) {
    this.#home = home
    this.#path = join(home, FILE)
  }

  /** `home`: its id where other daemons may use the database. */
  async open(storage: KeyValueStorage, home?: string): Promise<void> {
    if (home !== undefined) this.#key = `${INSTALLED}:${home}`
    // Without a home: written when no other daemon could use the database.
    const stored = (await storage.getItem(this.#key)) ?? (await storage.getItem(INSTALLED))
    const found = v.safeParse(v.array(v.string()), stored)
    const known = found.success ? found.output : null
    const { entries, problem } = readEntries(this.#path)
    // Any plugin may be an installed one.
    if (known === null && problem !== undefined) return
    this.#storage = storage
    const all = new Set([...(known ?? []), ...Object.keys(entries)])
    this.#installed = all
    if (known === null || all.size > known.length) await storage.setItem(this.#key, [...all])
  }

  of(folder: string): readonly string[] | undefined {
    return readEntries(this.#path).entries[this.#keyOf(folder)]
  }
  isInstalled(folder: string): boolean {
    return this.#installed?.has(this.#keyOf(folder)) === true || this.of(folder) !== undefined
  }
  problem(folder: string): string | undefined {
    const { entries, problem } = readEntries(this.#path)
    const key = this.#keyOf(folder)
    if (entries[key] !== undefined || this.#installed?.has(key) === false) return undefined
    if (this.#installed === undefined) return problem && `${problem}: ${advice()}`
    return `what it may use is unknown: ${problem ?? `${this.#path} lacks it`}; ${advice()}`
  }

  accept(folder: string, permissions: readonly string[]): Promise<void> {
    return this.#write(folder, [...new Set(permissions)].sort())
  }
  forget(folder: string): Promise<void> {
    return this.#write(folder, undefined)
  }

  /** The home may be moved. */
  #keyOf(folder: string): string {
    return relative(this.#home, resolve(folder))
  }

  #write(folder: string, permissions: readonly string[] | undefined): Promise<void> {
    const key = this.#keyOf(folder)
    return this.#writes.run(async () => {
      const { addKey, removeKey, writeEntries } = await import('./write-permissions.ts')
      const installed = permissions ? addKey(this.#installed, key) : removeKey(this.#installed, key)
      const remember = async (): Promise<void> => this.#storage?.setItem(this.#key, [...installed])
      // At no moment an installed plugin is one that nobody installed.
      if (permissions) await remember()
      await writeEntries(this.#home, FILE, readEntries(this.#path), key, permissions)
      if (!permissions) await remember()
      if (this.#storage) this.#installed = installed
    })
  }
}
const advice = (): string => `restore it, or run ${commandLine('plugin add <source> --update')}`

function readEntries(path: string): ReadEntries {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { entries: toEntries({}) }
    return {
      entries: toEntries({}),
      problem: `${path} cannot be read: ${String(error)}`,
    }
  }
  const found = parseEntries(text)
  const parsed = v.safeParse(Entries, found)
  if (!parsed.success || Array.isArray(found)) return { entries: toEntries({}), problem: `${path} is damaged` }
  return { entries: toEntries(parsed.output) }
}
function toEntries(entries: EntriesByFolder): EntriesByFolder {
  return Object.assign(Object.create(null) as Record<string, readonly string[]>, entries)
}
function parseEntries(text: string): unknown {
  try {
    return readOwnJson(text)
  } catch {
    return undefined /* damaged, which the caller reports */
  }
}
