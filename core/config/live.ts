import { isDeepStrictEqual } from 'node:util'
import type { Config, LoadedConfig } from './load.ts'
import { CoreSchema, wholeSchema } from './schema.ts'
import type { PluginSchemas } from './schema.ts'
import { findSchema, isTree, marksOf } from './shape.ts'
import type { Schema, Tree } from './shape.ts'

/** What another configuration changes, by dotted key. */
export interface ConfigChange {
  /** Keys whose value is in force now. */
  readonly changed: readonly string[]
  /** Keys that differ from what the daemon was started with, and hold after a restart. */
  readonly restart: readonly string[]
}

/**
 * The configuration of a running daemon: one frozen object, replaced whole, so that nobody ever sees half of a change.
 */
export class LiveConfig {
  #loaded: LoadedConfig
  #schema: Schema = CoreSchema
  #restart: readonly string[] = []

  constructor(loaded: LoadedConfig) {
    this.#loaded = loaded
  }

  get current(): Config {
    return this.#loaded.config
  }
  get warnings(): readonly string[] {
    return this.#loaded.warnings
  }
  /** Dotted key to the source its value came from. */
  get sources(): ReadonlyMap<string, string> {
    return this.#loaded.sources
  }
  /** Keys that were changed since the start and wait for a restart. */
  get restart(): readonly string[] {
    return this.#restart
  }
  /** Of every key, those of the plugins that were declared included. */
  get schema(): Schema {
    return this.#schema
  }

  /**
   * Adds the keys that these plugins declare. Throws `ConfigError` for values that do not fit; the values stay as they
   * are then.
   */
  declare(plugins: readonly PluginSchemas[]): void {
    this.#schema = wholeSchema(plugins)
    const loaded = this.#loaded.complete(plugins)
    const { config } = this.plan(loaded.config, CoreSchema)
    this.#loaded = { ...loaded, config }
  }

  /** What `next` would make of this one: keys that are read at the start keep their value. */
  plan(next: Config, schema = this.#schema): { readonly config: Config; readonly change: ConfigChange } {
    const different = differences(this.current, next)
    const restart = different.filter((path) => needsRestart(path, schema))
    const held = restart.reduce((tree, path) => withValue(tree, path, valueAt(this.current, path)), next)
    const names = (paths: readonly (readonly string[])[]): string[] => paths.map((path) => path.join('.')).sort()
    return {
      config: Object.freeze(held),
      change: { changed: names(different.filter((path) => !restart.includes(path))), restart: names(restart) },
    }
  }

  /** Takes over what was planned. */
  replace(config: Config, loaded: LoadedConfig, change: ConfigChange): void {
    this.#loaded = { ...loaded, config }
    this.#restart = change.restart
  }
}

/** Whether a new value of this key, or of the section around it, holds after a restart. */
export function needsRestart(path: readonly string[], schema: Schema): boolean {
  return hasMark('restart', path, schema)
}
/** Whether the owner of this key, or of the section around it, reads it each time it needs it. */
export function isLive(path: readonly string[], schema: Schema): boolean {
  return hasMark('live', path, schema)
}
/** Whether this key, or the section around it, names folders that are opened to programs. */
export function opensFolders(path: readonly string[], schema: Schema): boolean {
  return hasMark('opens_folders', path, schema)
}
/** Whether this key, or the section around it, names folders with data of the daemon, which programs see nothing of. */
export function namesData(path: readonly string[], schema: Schema): boolean {
  return hasMark('data_folder', path, schema)
}
function hasMark(mark: string, path: readonly string[], schema: Schema): boolean {
  return path.some((_, depth) => {
    const found = findSchema(schema, path.slice(0, depth + 1))
    return found !== undefined && marksOf(found)[mark] === true
  })
}

/** Paths of the values that are not the same in both, tables looked into. */
function differences(a: unknown, b: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (isTree(a) && isTree(b))
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((key) =>
      differences(a[key], b[key], [...path, key]),
    )
  // A table that comes or goes is told by its keys, as they would be set.
  if (isTree(a) && b === undefined) return Object.keys(a).length === 0 ? [] : differences(a, {}, path)
  if (isTree(b) && a === undefined) return Object.keys(b).length === 0 ? [] : differences({}, b, path)
  return isDeepStrictEqual(a, b) ? [] : [path]
}
const valueAt = (tree: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, key) => (isTree(inner) ? inner[key] : undefined), tree)
function withValue<T>(tree: T, [key, ...rest]: readonly string[], value: unknown): T {
  if (key === undefined) return tree
  const { [key]: old, ...others } = tree as Tree
  const inner = rest.length > 0 ? withValue(isTree(old) ? old : {}, rest, value) : value
  return (inner === undefined ? others : { ...tree, [key]: inner }) as T
}
