import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Jiti } from 'jiti'
import type { AnyPlugin } from './define.ts'
import { checkDefinition, PluginProblem } from './definition.ts'
import { findEntry, togetherFile } from './folders.ts'

export interface LoaderOptions {
  /** Folders that ship with the daemon: imported natively the first time. */
  readonly builtIns: ReadonlySet<string>
  /** Where transpiled TypeScript is kept. */
  readonly cacheDir: string
}
/** The one door through which plugin code enters. */
export interface Loader {
  /** Begins to import, so that a later `load` of the same folder finds it done. */
  preload(folders: readonly string[]): void
  /**
   * The definition in a folder; `fresh` reads the code again. Throws `PluginProblem` with file and line where known.
   */
  load(folder: string, fresh: boolean): Promise<AnyPlugin>
}

export function createLoader({ builtIns, cacheDir }: LoaderOptions): Loader {
  const started = new Map<string, Promise<AnyPlugin>>()
  const importedAt = new Map<string, number>()
  const together = new Map<string, Promise<Readonly<Record<string, unknown>> | undefined>>()
  let jiti: Promise<Jiti> | undefined

  async function read(folder: string, fresh: boolean): Promise<AnyPlugin> {
    // What the build has together needs no look into its folder.
    const built = !fresh && builtIns.has(folder) ? await readTogether(folder) : undefined
    if (built !== undefined) return checkDefinition({ default: built }, folder)
    const entry = findEntry(folder)
    if (!entry) throw new PluginProblem(`${folder} holds no plugin: there is no index.ts or index.js`)
    const native = builtIns.has(folder) && (!fresh || (await isUnchanged(folder, entry)))
    if (native) importedAt.set(folder, Math.min(importedAt.get(folder) ?? Infinity, Date.now()))
    try {
      const exported: unknown = native
        ? await importBuiltIn(folder, entry)
        : await (await (jiti ??= startTranspiler(cacheDir))).import(entry)
      // The build has the types of its own plugins checked.
      if (!native) (await import('./version-range.ts')).checkApiVersion(exported, entry)
      return checkDefinition(exported, entry)
    } catch (error) {
      throw error instanceof PluginProblem ? error : new PluginProblem(describe(error, folder), { cause: error })
    }
  }

  async function importBuiltIn(folder: string, entry: string): Promise<unknown> {
    const definition = await readTogether(folder)
    // An expression, so that a bundler leaves it alone.
    return definition === undefined
      ? await import(/* @vite-ignore */ pathToFileURL(entry).href)
      : { default: definition }
  }

  /**
   * All built-ins are also built into one file beside their folder, because a file costs a start about a millisecond.
   */
  async function readTogether(folder: string): Promise<unknown> {
    const file = togetherFile(dirname(folder))
    const at = Date.now()
    let all = together.get(file)
    if (!all)
      together.set(
        file,
        (all = existsSync(file) ? import(/* @vite-ignore */ pathToFileURL(file).href) : Promise.resolve(undefined)),
      )
    try {
      const definition = (await all)?.[toName(basename(folder))]
      if (definition !== undefined) importedAt.set(folder, Math.min(importedAt.get(folder) ?? Infinity, at))
      return definition
    } catch (error) {
      throw new PluginProblem(describe(error, dirname(file)), { cause: error })
    }
  }

  /** Built code that nobody touched needs no second copy: its module holds no state (design 2.3). */
  async function isUnchanged(folder: string, entry: string): Promise<boolean> {
    const at = importedAt.get(folder)
    return at !== undefined && entry.endsWith('.js') && (await stat(entry)).mtimeMs <= at
  }

  return {
    preload(folders) {
      for (const folder of folders) {
        const reading = read(folder, false)
        // Whoever loads the folder gets the failure; until then it must not count as unhandled.
        reading.catch(() => undefined)
        started.set(folder, reading)
      }
    },
    load(folder, fresh) {
      const ready = started.get(folder)
      started.delete(folder)
      return !fresh && ready ? ready : read(folder, fresh)
    },
  }
}

/** The name of a plugin folder in the file of all built-ins. */
export function toName(folder: string): string {
  return `plugin_${folder.replaceAll('-', '_')}`
}

/**
 * The message with a place in the author's code: from the parser's text, else from the first line of the stack in the
 * folder.
 */
function describe(error: unknown, folder: string): string {
  if (!(error instanceof Error)) return `importing ${folder} failed: ${String(error)}`
  const message = error.message.replaceAll(/\s+/g, ' ').trim()
  if (/:\d+(:\d+)?$/.test(message)) return message
  const place = error.stack
    ?.split('\n')
    .map((line) => /(?:file:\/\/)?(\/[^()]+:\d+:\d+)/.exec(line)?.[1])
    .find((found) => found?.startsWith(folder))
  return place ? `${message} (${place})` : `${message} (in ${folder})`
}

async function startTranspiler(cacheDir: string): Promise<Jiti> {
  const { openTranspiler } = await import('./transpiler.ts')
  return openTranspiler(cacheDir)
}
