import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { withVariables } from '../process/inherited.ts'
import { defineConfig } from './define.ts'
import type { Layer } from './layer.ts'
import { nest, overlay, toTree } from './layer.ts'
import { ConfigError } from './problem.ts'
import { findSchema, isTree, unwrap } from './shape.ts'
import type { Schema, Tree } from './shape.ts'
import { fromText } from './text-value.ts'
import { NestingError } from '../schema/nesting.ts'
import { messageOf } from '../errors/message.ts'

/** Variables that speak to the command line and not to the configuration. */
const reserved = new Set(['SVC_HOME', 'SVC_CONFIG', 'SVC_URL', 'SVC_LISTEN', 'SVC_DEBUG'])

export interface ConfigModule {
  readonly layer: Layer
  readonly file: string
}

/**
 * `svc.config.*` of a folder or the file named; it runs code, so it is loaded only from where the operator started svc.
 */
export async function readConfigModule(options: {
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly configFile?: string | undefined
  readonly shippedFrom?: string | undefined
  readonly cacheDir: string | undefined
}): Promise<ConfigModule | undefined> {
  const file =
    options.configFile === undefined ? findConfigModule(options.cwd) : resolve(options.cwd, options.configFile)
  if (file === undefined || (options.configFile === undefined && file === options.shippedFrom)) return undefined
  if (!existsSync(file)) throw new ConfigError([{ file, message: 'the file named with --config does not exist' }])
  if (file.endsWith('.toml')) return { file, layer: await readToml(file) }
  const { loadConfig } = await import('c12')
  let tree: unknown
  try {
    // It finds the secrets of the environment under `process.env` as it would at the start, at every reading.
    const loaded = await withVariables(options.env, () =>
      loadConfig({
        cwd: dirname(file),
        configFile: file,
        rcFile: false,
        globalRc: false,
        packageJson: false,
        dotenv: false,
        envName: false,
        extend: false,
        giget: false,
        // A file outside the repository finds `svc/sdk` too; what is compiled stays in the home, not in a folder
        // everybody may write.
        jitiOptions: { virtualModules: { 'svc/sdk': { defineConfig } }, fsCache: options.cacheDir ?? false },
      }),
    )
    // The joined result is an object whatever the file exports.
    tree = loaded.layers?.find((layer) => layer.configFile !== undefined)?.config ?? loaded.config
  } catch (error) {
    throw new ConfigError(
      [
        {
          file,
          message: `cannot be loaded: ${oneLine(error)}`,
        },
      ],
      { cause: error },
    )
  }
  if (!isTree(tree))
    throw new ConfigError([{ file, message: 'its default export has to be an object; wrap it in defineConfig()' }])
  const text = readFileSync(file, 'utf8')
  const anchored = anchorPaths(tree, dirname(file))
  return {
    file,
    layer: { file, read: () => anchored, place: (path) => ({ line: findLine(text, path.at(-1)) }) },
  }
}
function findConfigModule(cwd: string): string | undefined {
  return ['ts', 'mts', 'js', 'mjs'].map((ending) => join(cwd, `svc.config.${ending}`)).find((file) => existsSync(file))
}
/** The only line that could set the key; code cannot be searched more exactly. */
function findLine(text: string, key: string | undefined): number | undefined {
  if (key === undefined) return undefined
  const lines = text
    .split('\n')
    .flatMap((line, index) =>
      ['', "'", '"'].some(
        (quote) => line.trimStart().startsWith(`${quote}${key}${quote}:`) || line.includes(`{ ${quote}${key}${quote}:`),
      )
        ? [index + 1]
        : [],
    )
  return lines.length === 1 ? lines[0] : undefined
}

export async function readToml(file: string): Promise<Layer> {
  const [{ TomlError }, { parseToml }] = await Promise.all([import('smol-toml'), import('./toml-text.ts')])
  const text = readText(file)
  let tree: unknown
  try {
    tree = parseToml(text)
  } catch (error) {
    if (error instanceof NestingError) throw new ConfigError([{ file, message: error.message }], { cause: error })
    if (!(error instanceof TomlError)) throw error
    const reason = error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '') ?? 'not valid TOML'
    throw new ConfigError([{ file, line: error.line, column: error.column, message: `not valid TOML: ${reason}` }], {
      cause: error,
    })
  }
  const { findPlace, indexToml } = await import('./toml-index.ts')
  let places: ReturnType<typeof indexToml> | undefined
  const anchored = anchorPaths(isTree(tree) ? plain(tree) : {}, dirname(file))
  return {
    file,
    read: () => anchored,
    place(path) {
      const found = findPlace((places ??= indexToml(text)), path)
      return { line: found?.line, column: found?.column }
    },
  }
}
/** smol-toml may make tables without the usual prototype. */
function plain(tree: Tree): Tree {
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, isTree(value) ? plain(value) : value]))
}
/** Throws `ConfigError`. A pipe or another special file would hold up the daemon until somebody writes to it. */
export function readText(file: string): string {
  try {
    if (!statSync(file).isFile()) throw new ConfigError([{ file, message: 'cannot be read: it is no file' }])
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
    throw new ConfigError([{ file, message: `cannot be read (${code})` }], { cause: error })
  }
}
/** Plugin folders are meant relative to the file that names them. */
function anchorPaths(tree: Tree, folder: string): Tree {
  const plugins = tree['plugins']
  if (!isTree(plugins) || !Array.isArray(plugins['paths'])) return tree
  const paths = plugins['paths'].map((path: unknown) =>
    typeof path === 'string' && path !== '' && !isAbsolute(path) ? resolve(folder, path) : path,
  )
  return { ...tree, plugins: { ...plugins, paths } }
}

/**
 * `SVC_RATE_LIMIT__TOKENS_PER_MINUTE`; a blank variable counts as not set, so that it cannot switch off a key by
 * accident.
 */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>, cwd: string): Layer {
  const listen = env['SVC_LISTEN']?.trim()
  const given = Object.entries(env).flatMap(([name, text = '']) =>
    name.startsWith('SVC_') && !reserved.has(name) && text.trim() !== '' ? [[name, text.trim()] as const] : [],
  )
  const names = new Map<string, string>()
  return {
    file: 'environment',
    read(schema) {
      let tree: Tree = {}
      const add = (name: string, path: readonly string[], text: string): void => {
        names.set(path.join('.'), name)
        tree = overlay(tree, nest(path, fromText(findSchema(schema, path), text)))
      }
      if (listen) add('SVC_LISTEN', ['listen_addr'], listen)
      for (const [name, text] of given) add(name, toPath(name, schema), text)
      return anchorPaths(tree, cwd)
    },
    place: (path) => ({ name: names.get(path.join('.')) }),
  }
}
function toPath(name: string, schema: Schema): string[] {
  const path = name.slice('SVC_'.length).toLowerCase().split('__')
  const [section = '', part] = path
  const table = path.length > 2 ? findSchema(schema, [section]) : undefined
  // Names of plugins and of entries of a section may have hyphens, which variables cannot have.
  if (part !== undefined && table && (section === 'plugins' || unwrap(table).type === 'record'))
    path[1] = part.replaceAll('_', '-')
  return path
}

/**
 * Flags by their configuration key, dotted; texts become what the key wants. `names` gives the flag of a key for
 * messages.
 */
export function readFlags(flags: Readonly<Record<string, unknown>>, cwd: string): Layer {
  const given = Object.entries(flags).filter(([, value]) => value !== undefined)
  return {
    file: 'flags',
    read(schema) {
      const values = given.map(([key, value]) => [
        key,
        typeof value === 'string' ? fromText(findSchema(schema, key.split('.')), value) : value,
      ])
      return anchorPaths(toTree(Object.fromEntries(values)), cwd)
    },
    place: (path) => ({ name: toFlag(path) }),
  }
}
function toFlag(path: readonly string[]): string {
  const last = path.at(-1) ?? ''
  return `--${last.replaceAll('_', '-')}`
}

export function readValues(file: string, tree: Tree, folder: string): Layer {
  const anchored = anchorPaths(tree, folder)
  return { file, read: () => anchored, place: () => ({}) }
}

function oneLine(error: unknown): string {
  return messageOf(error).replaceAll(/\s+/g, ' ').trim()
}
