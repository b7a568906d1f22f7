import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import * as v from 'valibot'
import { checkLayer, overlay, toTree } from './layer.ts'
import type { Layer } from './layer.ts'
import { findListenAddr, toListenAddr } from './listen.ts'
import { ConfigError } from './problem.ts'
import type { ConfigProblem } from './problem.ts'
import { ConfigSchema } from './schema.ts'
import type { Config } from './schema.ts'
import { readConfigModule, readEnvironment, readFlags, readToml, readValues } from './sources.ts'
import type { Tree } from './shape.ts'

export { ConfigError } from './problem.ts'
export type { Config } from './schema.ts'

export interface ConfigOptions {
  /** The home, absolute; see `findHome`. */
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
}

/** The home of the daemon: the flag, `SVC_HOME`, or `~/.svc`. Absolute. */
export function findHome(flag: string | undefined, env: ConfigOptions['env'], cwd: string): string {
  const named = flag?.trim() || env['SVC_HOME']?.trim()
  if (!named) return join(env['HOME'] || homedir(), '.svc')
  return resolve(cwd, named.replace(/^~(?=$|\/)/, env['HOME'] || homedir()))
}

/**
 * Reads every source, later ones winning: defaults, the shipped configuration, `svc.config.*`, `<home>/config.toml`, the environment,
 * flags, values set while running. Throws `ConfigError` with everything that is wrong.
 */
export async function loadConfig(options: ConfigOptions): Promise<LoadedConfig> {
  const { home, cwd, env } = options
  const layers: Layer[] = []
  const files: string[] = []
  if (options.shipped)
    layers.push(
      readValues(
        'svc.config.ts',
        options.shipped,
        options.shippedFrom === undefined ? cwd : dirname(options.shippedFrom),
      ),
    )
  const module = await readConfigModule({
    cwd,
    env,
    configFile: options.configFile ?? (env['SVC_CONFIG']?.trim() || undefined),
    shippedFrom: options.shippedFrom,
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
  const { host, port, ...flags } = options.flags
  layers.push(readFlags(flags, cwd))
  if (options.runtime) layers.push(readValues('run time', toTree(options.runtime), home))

  const checks = layers.map((layer) => checkLayer(ConfigSchema, layer))
  const problems = checks.flatMap((check) => check.problems)
  const warnings = checks.flatMap((check) => check.warnings)
  const sources = new Map<string, string>()
  const merged = layers.reduce<Tree>(
    (tree, layer) => overlay(tree, layer.tree, (path) => sources.set(path.join('.'), nameSource(layer, path))),
    {},
  )
  const listenAddr = overrideListen(merged['listen_addr'], host, port, problems, sources)
  if (problems.length > 0) throw new ConfigError(problems)

  const parsed = v.parse(ConfigSchema, { ...merged, ...(listenAddr === undefined ? {} : { listen_addr: listenAddr }) })
  if (parsed.home_dir !== undefined && resolve(parsed.home_dir) !== home) {
    warnings.push(
      `${sources.get('home_dir') ?? 'home_dir'}: home_dir has no effect there, because the home is where the file is looked for; use --home or SVC_HOME`,
    )
  }
  const dataDir = parsed.data_dir === undefined ? join(home, 'data') : resolve(home, parsed.data_dir)
  const { api_key: key, ...rest } = parsed
  const triggers = parsed.webhook_triggers
  const token = triggers.token?.trim() || env[triggers.token_env]?.trim()
  const config: Config = {
    ...rest,
    ...(key?.trim() ? { api_key: key.trim() } : {}),
    webhook_triggers: { ...triggers, ...(token ? { token } : {}) },
    home_dir: home,
    data_dir: dataDir,
    database_url: parsed.database_url ?? `sqlite:${join(dataDir, 'svc.db')}`,
  }
  return { config: freeze(config), warnings, sources, files }
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
