import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AnyPlugin } from './define.ts'
import { checkDefinition, PluginProblem } from './definition.ts'
import { findEntry, fingerprint, togetherFile } from './folders.ts'
import type { IsolationDeps } from './isolation/isolated-plugin.ts'
import type { Transpiler } from './transpiler.ts'

export interface LoaderOptions {
  /** How the plugin in this folder runs in a process of its own; `undefined`: in this one. */
  readonly isolation?: (folder: string) => IsolationDeps | undefined
  /** Folders that ship with the daemon; the first import is native. */
  readonly builtIns: ReadonlySet<string>
  /** Folder for transpiled TypeScript; `undefined` keeps none. */
  readonly cacheDir: string | undefined
}
/** Loads the code of plugins. */
export interface Loader {
  /** Starts the import, so that a later `load` of the same folder finds it done. */
  preload(folders: readonly string[]): void
  /**
   * The definition in a folder; `fresh` reads the code again. Throws `PluginProblem` with file and line where known.
   */
  load(folder: string, fresh: boolean): Promise<AnyPlugin>
  /** The fingerprint of a folder when its code was last evaluated, here or in a process; `undefined` if it was not. */
  stamp(folder: string): Promise<string | undefined>
}

type BuiltInFile = Promise<Readonly<Record<string, unknown>> | undefined>

export function createLoader(options: LoaderOptions): Loader {
  return new PluginLoader(options)
}

class PluginLoader implements Loader {
  readonly #options: LoaderOptions
  readonly #started = new Map<string, Promise<AnyPlugin>>()
  readonly #importedAt = new Map<string, number>()
  /** Files that contain all built-in plugins. */
  readonly #builtInFiles = new Map<string, BuiltInFile>()
  readonly #stamps = new Map<string, Promise<string | undefined>>()
  #transpiler: Promise<Transpiler> | undefined

  constructor(options: LoaderOptions) {
    this.#options = options
  }

  preload(folders: readonly string[]): void {
    for (const folder of folders) {
      const reading = this.#read(folder, false)
      // `load` returns this promise; until then its rejection must not count as unhandled.
      reading.catch(() => undefined)
      this.#started.set(folder, reading)
    }
  }
  load(folder: string, fresh: boolean): Promise<AnyPlugin> {
    const ready = this.#started.get(folder)
    this.#started.delete(folder)
    return !fresh && ready ? ready : this.#read(folder, fresh)
  }

  stamp(folder: string): Promise<string | undefined> {
    return this.#stamps.get(folder) ?? Promise.resolve(undefined)
  }

  async #read(folder: string, fresh: boolean): Promise<AnyPlugin> {
    const isBuiltIn = this.#options.builtIns.has(folder)
    // A plugin from the common file needs no access to its folder.
    const built = !fresh && isBuiltIn ? await this.#readBuiltIn(folder) : undefined
    if (built !== undefined) return checkDefinition({ default: built }, folder)
    const entry = findEntry(folder)
    if (!entry) throw new PluginProblem(`${folder} holds no plugin: there is no index.ts or index.js`)
    const isNative = isBuiltIn && (!fresh || (await this.#isUnchanged(folder, entry)))
    if (isNative) this.#noteImport(folder, Date.now())
    // Taken first: what changes while it is read is a further change.
    else await this.#takeStamp(folder)
    try {
      const isolation = isBuiltIn ? undefined : this.#options.isolation?.(folder)
      if (isolation) return await readIsolated(folder, entry, isolation)
      const exported: unknown = isNative
        ? await this.#importBuiltIn(folder, entry)
        : await this.#transpile(folder, entry)
      return checkDefinition(exported, entry)
    } catch (error) {
      throw error instanceof PluginProblem ? error : await toProblem(error, folder)
    }
  }

  async #transpile(folder: string, entry: string): Promise<unknown> {
    const transpiler = await (this.#transpiler ??= startTranspiler(this.#options.cacheDir))
    const exported: unknown = await transpiler.import(entry, folder)
    // The types of built-in plugins were checked by their build.
    const { checkApiVersion } = await import('./version-range.ts')
    checkApiVersion(exported, entry)
    return exported
  }

  async #importBuiltIn(folder: string, entry: string): Promise<unknown> {
    const definition = await this.#readBuiltIn(folder)
    // An expression, so that a bundler leaves it alone.
    return definition === undefined
      ? await import(/* @vite-ignore */ pathToFileURL(entry).href)
      : { default: definition }
  }

  /** The build also puts all built-in plugins into one file, because each file adds about a millisecond to a start. */
  async #readBuiltIn(folder: string): Promise<unknown> {
    const file = togetherFile(dirname(folder))
    const at = Date.now()
    let all = this.#builtInFiles.get(file)
    if (!all) {
      all = existsSync(file) ? import(/* @vite-ignore */ pathToFileURL(file).href) : Promise.resolve(undefined)
      this.#builtInFiles.set(file, all)
    }
    try {
      const definition = (await all)?.[toName(basename(folder))]
      if (definition !== undefined) this.#noteImport(folder, at)
      return definition
    } catch (error) {
      throw await toProblem(error, dirname(file))
    }
  }

  #takeStamp(folder: string): Promise<string | undefined> {
    const stamp = fingerprint(folder).catch(() => undefined /* gone */)
    this.#stamps.set(folder, stamp)
    return stamp
  }
  #noteImport(folder: string, at: number): void {
    this.#importedAt.set(folder, Math.min(this.#importedAt.get(folder) ?? Infinity, at))
  }
  /** Built code that did not change is not imported a second time: its modules hold no state (design 2.3). */
  async #isUnchanged(folder: string, entry: string): Promise<boolean> {
    const at = this.#importedAt.get(folder)
    return at !== undefined && entry.endsWith('.js') && (await stat(entry)).mtimeMs <= at
  }
}

/** The name of a plugin folder in the file of all built-ins. */
export function toName(folder: string): string {
  return `plugin_${folder.replaceAll('-', '_')}`
}

/** The code is evaluated in a process of its own. */
async function readIsolated(folder: string, entry: string, deps: IsolationDeps): Promise<AnyPlugin> {
  const isolated = await import('./isolation/isolated-plugin.ts')
  return checkDefinition({ default: await isolated.readIsolated(folder, deps) }, entry)
}

async function startTranspiler(cacheDir: string | undefined): Promise<Transpiler> {
  const { openTranspiler } = await import('./transpiler.ts')
  return openTranspiler(cacheDir)
}
async function toProblem(error: unknown, folder: string): Promise<PluginProblem> {
  const { importProblem } = await import('./import-problem.ts')
  return await importProblem(error, folder)
}
