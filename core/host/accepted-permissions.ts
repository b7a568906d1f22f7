import { readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import * as v from 'valibot'
import { commandLine } from '../process/command-name.ts'
import { readOwnJson } from '../schema/nesting.ts'
import { SerialQueue } from '../scope/queue.ts'
import type { KeyValueStorage } from '../storage/key-value.ts'
import { defineService } from './define.ts'

/**
 * What the operator accepted for installed plugins, by folder. An installed plugin loads only if everything it declares
 * is accepted, and what it does not declare is refused.
 */
export interface AcceptedPermissions {
  /** `undefined` for a folder that was not installed, and where nothing is known to be accepted. */
  of(folder: string): readonly string[] | undefined
  /** Whether the plugin in the folder was installed, also if what was accepted for it is lost. */
  isInstalled(folder: string): boolean
  /** Why the plugin in the folder may not be loaded: it was installed, and what was accepted for it is lost. */
  problem(folder: string): string | undefined
  /** Durable before it settles. The plugin in the folder is loaded with these from now on. */
  accept(folder: string, permissions: readonly string[]): Promise<void>
  /** Durable before it settles. For a plugin that was removed. */
  forget(folder: string): Promise<void>
}
export const AcceptedPermissions = defineService<AcceptedPermissions>()('accepted-permissions')

const FILE = 'accepted-permissions.json'
const INSTALLED = 'installed_plugins'
const Entries = v.record(v.string(), v.array(v.string()))
export type EntriesByFolder = Readonly<Record<string, readonly string[]>>

/**
 * Keeps them in a file of the home, and in the database which folders were installed: a file that is lost or damaged
 * must not turn an installed plugin into one that the operator wrote.
 */
export class AcceptedPermissionsFile implements AcceptedPermissions {
  readonly #home: string
  readonly #path: string
  readonly #writes = new SerialQueue()
  #installed: ReadonlySet<string> | undefined
  #storage: KeyValueStorage | undefined

  constructor(home: string) {
    this.#home = home
    this.#path = join(home, FILE)
  }

  /** Reads which folders were installed. Before, only the file tells. */
  async open(storage: KeyValueStorage): Promise<void> {
    const found = v.safeParse(v.array(v.string()), await storage.getItem(INSTALLED))
    const known = found.success ? found.output : null
    const { entries, problem } = readEntries(this.#path)
    // A home without the list, whose file cannot be read: any plugin may be an installed one.
    if (known === null && problem !== undefined) return
    this.#storage = storage
    const all = new Set([...(known ?? []), ...Object.keys(entries)])
    this.#installed = all
    if (known === null || all.size > known.length) await storage.setItem(INSTALLED, [...all])
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
    return `it was installed, and what was accepted for it is unknown: ${problem ?? `${this.#path} lacks it`}; ${advice()}`
  }

  accept(folder: string, permissions: readonly string[]): Promise<void> {
    return this.#write(folder, [...new Set(permissions)].sort())
  }
  forget(folder: string): Promise<void> {
    return this.#write(folder, undefined)
  }

  /** Relative to the home, so that they hold where the home is moved or restored to. */
  #keyOf(folder: string): string {
    return relative(this.#home, resolve(folder))
  }

  #write(folder: string, permissions: readonly string[] | undefined): Promise<void> {
    const key = this.#keyOf(folder)
    return this.#writes.run(async () => {
      const { addKey, removeKey, writeEntries } = await import('./write-permissions.ts')
      const installed = permissions ? addKey(this.#installed, key) : removeKey(this.#installed, key)
      const remember = async (): Promise<void> => this.#storage?.setItem(INSTALLED, [...installed])
      // At no moment an installed plugin is one that nobody installed.
      if (permissions) await remember()
      await writeEntries(this.#home, FILE, readEntries(this.#path), key, permissions)
      if (!permissions) await remember()
      if (this.#storage) this.#installed = installed
    })
  }
}
const advice = (): string => `restore it, or run ${commandLine('plugin add <source> --update')}`

export interface ReadEntries {
  readonly entries: EntriesByFolder
  readonly problem?: string
}
/** With the reason if the file is there and cannot be used: then nothing is known to be accepted. */
function readEntries(path: string): ReadEntries {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { entries: toEntries({}) }
    return {
      entries: toEntries({}),
      problem: `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    }
  }
  const found = parseEntries(text)
  const parsed = v.safeParse(Entries, found)
  if (!parsed.success || Array.isArray(found)) return { entries: toEntries({}), problem: `${path} is damaged` }
  return { entries: toEntries(parsed.output) }
}
/** Without a prototype, so that no folder has the name of one of its members. */
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
