import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import { isObject, omitUndefined } from '../schema/object.ts'
import { checkLayer, overlay, toTree } from './layer.ts'
import type { Layer, UnknownKey } from './layer.ts'
import { findListenAddr, toListenAddr } from './listen.ts'
import { ConfigError, issueProblems } from './problem.ts'
import type { ConfigProblem } from './problem.ts'
import { listVariables } from './redact.ts'
import { CoreSchema, fileSchema, wholeSchema } from './schema.ts'
import type { Config, PluginSchemas } from './schema.ts'
import { readConfigModule, readEnvironment, readFlags, readToml, readValues } from './sources.ts'
import type { Tree } from './shape.ts'

export { findHome } from './home.ts'
export { ConfigError } from './problem.ts'
export type { Config, PluginSchemas } from './schema.ts'

export interface ConfigOptions {
  /** The home, absolute; see `findHome` in `home.ts`. */
  readonly home: string
  /** What `--config` names, instead of a `svc.config.*` in `cwd`. */
  readonly configFile?: string | undefined
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** By dotted key, and `host` and `port`, which change parts of `listen_addr`. */
  readonly flags: Readonly<Record<string, unknown>>
  /** Values set while running, by dotted key. */
  readonly runtime?: Readonly<Record<string, unknown>> | undefined
  /** The repository's own `svc.config.ts` as it was compiled into the build. */
  readonly shipped?: Readonly<Record<string, unknown>> | undefined
  /** The file `shipped` was compiled from: it is not loaded again. */
  readonly shippedFrom?: string | undefined
}
export interface LoadedConfig {
  readonly config: Config
  /** Keys that nothing knows and values that have no effect, each with its place. */
  readonly warnings: readonly string[]
  /** Dotted key to the source its value came from; a key that is missing has its default. */
  readonly sources: ReadonlyMap<string, string>
  /** The files that were read. */
  readonly files: readonly string[]
  /**
   * The same sources with the sections that these plugins own checked, converted and filled with defaults. Those of
   * plugins that are disabled stay as they are. Throws `ConfigError` with everything that is wrong.
   */
  complete(plugins: readonly PluginSchemas[]): LoadedConfig
}

/**
 * Reads every source, later ones winning: defaults, the shipped configuration, `svc.config.*`, `<home>/config.toml`,
 * the environment,
 * flags, values set while running. Checks the core's own keys; `complete` checks those of plugins, once their
 * definitions are known.
 * Throws `ConfigError` with everything that is wrong.
 */
export async function loadConfig(options: ConfigOptions): Promise<LoadedConfig> {
  const { layers, files } = await readLayers(options)
  const { host, port } = options.flags
  return resolveLayers({ home: options.home, layers, files, host, port })
}

async function readLayers(options: ConfigOptions): Promise<Pick<LayeredSources, 'layers' | 'files'>> {
  const { home, cwd, env, shipped, shippedFrom } = options
  const layers: Layer[] = []
  const files: string[] = []
  if (shipped) layers.push(readValues('svc.config.ts', shipped, shippedFrom === undefined ? cwd : dirname(shippedFrom)))
  const module = await readConfigModule({
    cwd,
    env,
    configFile: options.configFile ?? (env['SVC_CONFIG']?.trim() || undefined),
    shippedFrom,
    cacheDir: existsSync(home) ? join(home, 'cache', 'config') : undefined,
  })
  if (module) {
    layers.push(module.layer)
    files.push(module.file)
  }
  const toml = join(home, 'config.toml')
  if (existsSync(toml)) {
    layers.push(await readToml(toml))
    files.push(toml)
  }
  layers.push(readEnvironment(env, cwd))
  const { host: _host, port: _port, ...flags } = options.flags
  layers.push(readFlags(flags, cwd))
  if (options.runtime) layers.push(readValues('run time', toTree(options.runtime), home))
  return { layers, files }
}

/**
 * What is wrong with each value by itself, in the sections of these plugins too. `loadConfig` and `complete` end at the
 * first part that cannot be used; somebody who corrects a file wants to know all of it.
 */
export async function findProblems(
  options: ConfigOptions,
  plugins: readonly PluginSchemas[],
): Promise<readonly ConfigProblem[]> {
  const { layers } = await readLayers(options)
  const whole = wholeSchema(plugins)
  const merged = layers.reduce<Tree>((tree, layer) => overlay(tree, layer.read(whole)), {})
  const disabled = disabledPlugins(merged, plugins)
  const schema = wholeSchema(plugins.filter((plugin) => !disabled.includes(plugin)))
  return layers.flatMap((layer) => checkLayer(schema, layer, layer.read(schema)).problems)
}

interface LayeredSources {
  readonly home: string
  readonly layers: readonly Layer[]
  readonly files: readonly string[]
  /** What `--host` and `--port` say. */
  readonly host: unknown
  readonly port: unknown
}

/** Joins the layers and checks them: the core's keys, and when `plugins` are given the sections they own. */
function resolveLayers(from: LayeredSources, plugins?: readonly PluginSchemas[]): LoadedConfig {
  const { home, layers, files, host, port } = from
  const whole = plugins ? wholeSchema(plugins) : CoreSchema
  const trees = layers.map((layer) => layer.read(whole))
  const sources = new Map<string, string>()
  const merged = layers.reduce<Tree>(
    (tree, layer, index) =>
      overlay(tree, trees[index] ?? {}, (path) => sources.set(path.join('.'), nameSource(layer, path))),
    {},
  )
  const disabled = disabledPlugins(merged, plugins ?? [])
  const schema = plugins ? fileSchema(plugins.filter((plugin) => !disabled.includes(plugin))) : CoreSchema
  const checks = layers.map((layer, index) => checkLayer(schema, layer, trees[index] ?? {}))
  const problems = checks.flatMap((check) => check.problems)
  const listenAddr = overrideListen(merged['listen_addr'], host, port, problems, sources)
  if (problems.length > 0) throw new ConfigError(problems)

  const result = v.safeParse(schema, { ...merged, ...omitUndefined({ listen_addr: listenAddr }) })
  if (!result.success) throw new ConfigError(issueProblems(schema, result.issues, sources))
  const parsed = result.output as v.InferOutput<typeof CoreSchema>
  const { unknown, rest } = splitUnknown(
    checks.flatMap((check) => check.unknown),
    merged,
    parsed,
  )
  const warnings = [...unknown.map((key) => explainUnknown(key, disabled)), ...homeWarnings(parsed, home, sources)]
  const config = freeze(withPlaces({ ...rest, ...parsed }, home))
  return { config, warnings, sources, files, complete: (known) => resolveLayers(from, known) }
}

/** The same with one more warning, which stays when it is completed. */
export function withWarning(loaded: LoadedConfig, warning: string): LoadedConfig {
  return {
    ...loaded,
    warnings: [...loaded.warnings, warning],
    complete: (plugins) => withWarning(loaded.complete(plugins), warning),
  }
}

/** Those of the plugins that the configuration switches off. */
function disabledPlugins(merged: Tree, plugins: readonly PluginSchemas[]): readonly PluginSchemas[] {
  const names = isObject(merged['plugins']) ? merged['plugins']['disabled'] : undefined
  return plugins.filter(({ name }) => Array.isArray(names) && names.includes(name))
}

/** Keys to warn of, and what stands at the top of the file that the schema does not have. */
function splitUnknown(
  unknown: readonly UnknownKey[],
  merged: Tree,
  parsed: Tree,
): { readonly unknown: readonly UnknownKey[]; readonly rest: Tree } {
  // A variable that a key such as `token_env` names is no key, whatever its name begins with.
  const variables = new Set(listVariables({ ...merged, ...parsed }))
  const named = unknown.filter(({ name }) => name !== undefined && variables.has(name))
  const dropped = new Set(named.map(({ path: [first] }) => first))
  return {
    unknown: unknown.filter((key) => !named.includes(key)),
    rest: Object.fromEntries(Object.entries(merged).filter(([key]) => !(key in parsed) && !dropped.has(key))),
  }
}
function explainUnknown({ path: [first = ''], warning }: UnknownKey, disabled: readonly PluginSchemas[]): string {
  const owner = disabled.find(({ sections = {} }) => Object.hasOwn(sections, first))
  if (!owner) return warning
  const place = warning.slice(0, warning.indexOf(': unknown key '))
  return `${place}: ${first} has no effect, because plugin "${owner.name}" is disabled`
}

function homeWarnings({ home_dir: named }: Tree, home: string, sources: ReadonlyMap<string, string>): string[] {
  if (typeof named !== 'string' || resolve(named) === home) return []
  const reason = 'the home is where the file is looked for; use --home or SVC_HOME'
  return [`${sources.get('home_dir') ?? 'home_dir'}: home_dir has no effect there, because ${reason}`]
}

/** With absolute directories and without a blank key. */
function withPlaces(parsed: v.InferOutput<typeof CoreSchema>, home: string): Config {
  const dataDir = parsed.data_dir === undefined ? join(home, 'data') : resolve(home, parsed.data_dir)
  const { api_key: key, ...rest } = parsed
  return {
    ...rest,
    ...omitUndefined({ api_key: key?.trim() || undefined }),
    home_dir: home,
    data_dir: dataDir,
    database_url: parsed.database_url ?? `sqlite:${join(dataDir, 'svc.db')}`,
  }
}

function nameSource(layer: Layer, path: readonly string[]): string {
  const { line, name } = layer.place(path)
  return name ?? (line === undefined ? layer.file : `${layer.file}:${line}`)
}
/** `--host` and `--port` change one part of the address and leave the other. */
function overrideListen(
  address: unknown,
  host: unknown,
  port: unknown,
  problems: ConfigProblem[],
  sources: Map<string, string>,
): string | undefined {
  if (host === undefined && port === undefined) return undefined
  const base = (typeof address === 'string' ? findListenAddr(address) : undefined) ?? { host: '127.0.0.1', port: 4545 }
  const number = port === undefined ? base.port : /^\d{1,5}$/.test(String(port)) ? Number(port) : -1
  if (number < 0 || number > 65_535) {
    problems.push({
      file: 'flags',
      key: 'listen_addr',
      name: '--port',
      expected: 'a whole number from 0 to 65535',
      found: JSON.stringify(port),
    })
  }
  const name =
    host === undefined
      ? base.host
      : String(host)
          .trim()
          .replace(/^\[(.*)\]$/, '$1')
  const joined = toListenAddr({ host: name, port: Math.min(65_535, Math.max(0, number)) })
  if (findListenAddr(joined) === undefined || name === '') {
    problems.push({
      file: 'flags',
      key: 'listen_addr',
      name: '--host',
      expected: 'a host name or an address',
      found: JSON.stringify(host),
    })
  }
  sources.set('listen_addr', host === undefined ? '--port' : port === undefined ? '--host' : '--host, --port')
  return joined
}
function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) freeze(inner)
  }
  return value
}
