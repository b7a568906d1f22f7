import { basename, join } from 'node:path'
import { isLoopback, parseListenAddr } from '../config/listen.ts'
import { isLive } from '../config/live.ts'
import type { ConfigChange, LiveConfig } from '../config/live.ts'
import { nest, overlay, splitKey } from '../config/layer.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import { ConfigError, printProblem } from '../config/problem.ts'
import { redact } from '../config/redact.ts'
import { wholeSchema } from '../config/schema.ts'
import { findSchema, isTree, knownKeys } from '../config/shape.ts'
import type { Schema } from '../config/shape.ts'
import type { Config, LoadedConfig } from '../config/load.ts'
import type { AppliedChange, Configuration } from './configuration-service.ts'
import { Refusal } from '../errors/error.ts'
import { runningCalls } from '../scope/call.ts'
import { omitUndefined } from '../schema/object.ts'
import { SerialQueue } from '../scope/queue.ts'
import type { Host } from './host.ts'
import { findMeant, ignoredKeys, parseSections, sectionWarnings } from './section.ts'
import type { Sources } from './section.ts'
import { messageOf } from '../errors/message.ts'

export interface ConfigurationDeps {
  readonly live: LiveConfig
  readonly host: Host
  /** Reads every source again. Absent: the daemon was not started from files. */
  readonly reread: (() => Promise<LoadedConfig>) | undefined
  /** Called with new values, for those who keep a copy. */
  readonly onChange: (config: Config) => void
}

export function createConfiguration(deps: ConfigurationDeps): Configuration {
  return new RunningConfiguration(deps)
}

type SetListener = Parameters<Configuration['onSet']>[0]

/** Keys whose shown value is kept. */
const MAX_SHOWN = 500

class RunningConfiguration implements Configuration {
  readonly #deps: ConfigurationDeps
  /** One change at a time: each is compared with the result of the one before. */
  readonly #changes = new SerialQueue()
  readonly #listeners = new Set<SetListener>()
  /** What keys showed since the configuration changed last: plugins read some of them with every turn. */
  #shown: { readonly config?: Config; readonly schema?: Schema; readonly values: Map<string, unknown> } = {
    values: new Map(),
  }

  constructor(deps: ConfigurationDeps) {
    this.#deps = deps
  }

  read(): Readonly<Record<string, unknown>> {
    const { live } = this.#deps
    return redact(live.current, live.schema) as Readonly<Record<string, unknown>>
  }
  shown(key: string, ...value: [unknown?]): unknown {
    const { current, schema } = this.#deps.live
    if (value.length > 0) return redactKey(splitKey(key), value[0], schema)
    if (this.#shown.config !== current || this.#shown.schema !== schema)
      this.#shown = { config: current, schema, values: new Map() }
    const { values } = this.#shown
    if (values.has(key)) return values.get(key)
    const path = splitKey(key)
    const shown = redactKey(path, valueAt(current, path), schema)
    if (typeof shown !== 'object' && values.size < MAX_SHOWN) values.set(key, shown)
    return shown
  }
  sources(): ReadonlyMap<string, string> {
    return this.#deps.live.sources
  }
  async digests(secret: Uint8Array): Promise<ReadonlyMap<string, string>> {
    const { configDigests, withoutDefaults } = await import('../config/digests.ts')
    const { host, live } = this.#deps
    const { plugins, ...rest } = live.current
    const sections = host
      .definitions()
      .map(({ name, config }) => [name, withoutDefaults(config, plugins[name])] as const)
    return configDigests({ ...rest, plugins: { ...plugins, ...Object.fromEntries(sections) } }, secret)
  }
  async isOfMachine(key: string): Promise<boolean> {
    return (await import('../config/digests.ts')).isOfMachine(key)
  }
  restart(): readonly string[] {
    return this.#deps.live.restart
  }
  async schema(): Promise<Record<string, unknown>> {
    return (await import('../config/json-schema.ts')).configJsonSchema(this.#deps.host.definitions())
  }

  async check(key: string, value: unknown): Promise<void> {
    const { live } = this.#deps
    const path = splitKey(key)
    // Loaded lazily: only a change needs the TOML parser.
    const { checkConfigKey, checkConfigValue } = await import('../config/set.ts')
    const { findFileOnly } = await import('../config/find-file-only.ts')
    const schema = this.#schemaFor(path)
    try {
      checkConfigKey('the value', path, schema)
      const found = findFileOnly(schema, path, value)
      if (found) throw fileOnlyRefusal(found.path, found.reason)
      checkConfigValue('the value', key, value, schema)
    } catch (error) {
      throw refusalOf(error, 'invalid_request')
    }
    const { config, change } = live.plan(overlay(live.current, nest(path, value)) as Config)
    this.#checkWhole(config, change, new Map([[key, 'the value']]))
    if (live.current.api_key !== undefined && !config.api_key?.trim())
      throw fileOnlyRefusal(['api_key'], 'without a key everybody on this machine is the owner')
  }

  set(key: string, value: unknown): Promise<AppliedChange> {
    return this.#changes.run(async () => {
      const applied = await this.#write(key, value)
      for (const listener of this.#listeners) await listener(key, value)
      return applied
    })
  }
  adopt(key: string, value: unknown): Promise<AppliedChange> {
    return this.#changes.run(() => this.#write(key, value))
  }
  onSet(listener: SetListener): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }
  async #write(key: string, value: unknown): Promise<AppliedChange> {
    await this.check(key, value)
    const { setConfigValue } = await import('../config/set.ts')
    try {
      await setConfigValue(fileOf(this.#deps.live.current), key, value, this.#schemaFor(splitKey(key)))
    } catch (error) {
      throw refusalOf(error, 'conflict')
    }
    try {
      return await this.#apply()
    } catch (error) {
      throw new Refusal(
        'conflict',
        `${key} is written, but the configuration as a whole cannot be used and the old one goes on: ` +
          messageOf(refusalOf(error, 'conflict')),
        { details: { key, status: 'saved_reload_failed' }, cause: error },
      )
    }
  }
  reload(): Promise<AppliedChange> {
    return this.#changes.run(async () => {
      try {
        return await this.#apply()
      } catch (error) {
        throw refusalOf(error, 'invalid_request')
      }
    })
  }

  /** Reads all sources again and applies them to the daemon and its plugins. */
  async #apply(): Promise<AppliedChange> {
    const { live, host, reread, onChange } = this.#deps
    if (!reread) throw new Refusal('service_unavailable', 'This daemon was started without configuration files')
    const loaded = (await reread()).complete(host.known())
    const { config, change } = live.plan(loaded.config)
    this.#checkWhole(config, change, loaded.sources)
    live.replace(config, loaded, change)
    onChange(config)
    const reloads = await this.#reloadPlugins(this.#affectedPlugins(change))
    const names = host.plugins().map(({ name }) => name)
    const ignored = ignoredKeys(config, host.definitions(), names)
    return {
      changed: change.changed.filter((key) => !ignored.some((each) => key === each || key.startsWith(`${each}.`))),
      restart: change.restart,
      warnings: [...loaded.warnings, ...sectionWarnings(config, host.plugins(), host.definitions(), loaded.sources)],
      ...reloads,
    }
  }

  /** Throws a refusal for a configuration that is unsafe as a whole, or that a plugin would refuse. */
  #checkWhole(config: Config, change: ConfigChange, sources: Sources): void {
    const { live, host } = this.#deps
    const { host: address } = parseListenAddr(live.current.listen_addr)
    // The file counts a blank key as no key, so a value about to be set does too.
    if (!config.api_key?.trim() && !config.allow_no_auth && (!isLoopback(address) || config.http.public)) {
      throw new Refusal('invalid_request', `api_key: other machines reach ${address}, so a key has to be set`, {
        details: { key: 'api_key' },
      })
    }
    for (const plugin of this.#affectedPlugins(change)) {
      const definition = host.definitions().find(({ name }) => name === plugin)
      try {
        if (definition) parseSections(definition, config, sources)
      } catch (error) {
        throw new Refusal('invalid_request', messageOf(refusalOf(error, 'invalid_request')), {
          details: { plugin },
          cause: error,
        })
      }
    }
  }

  /** Plugins that a change reloads. */
  #affectedPlugins({ changed }: ConfigChange): readonly string[] {
    const { live, host } = this.#deps
    const loaded = new Set(
      host
        .plugins()
        .filter(({ state }) => state === 'loaded' || state === 'failed')
        .map(({ name }) => name),
    )
    const named = changed.map(splitKey).flatMap((path) => {
      const [section = '', name] = path
      if (isLive(path, live.schema)) return []
      return (section === 'plugins' ? name : host.ownerOf(section)) ?? []
    })
    return [...new Set(named)].filter((name) => loaded.has(name))
  }

  /** The schema that checks a key. Only a loaded plugin knows the schema of its own section. */
  #schemaFor([first = '', plugin = '', ...rest]: readonly string[]): Schema {
    const { live, host } = this.#deps
    const { disabled } = live.current.plugins
    const schema = wholeSchema(host.known().filter(({ name }) => !disabled.includes(name)))
    if (first !== 'plugins' || rest.length === 0) return schema
    const key = [first, plugin, ...rest].join('.')
    const refuse = (text: string, nearest: string | undefined): never => {
      throw new Refusal('invalid_request', `${key}: ${text}${suggest(nearest)}`, { details: { key } })
    }
    const definition = host.definitions().find(({ name }) => name === plugin)
    if (!definition) {
      const names = host.plugins().map(({ name }) => name)
      return refuse(`no plugin "${plugin}" is loaded that could check it`, findNearest(plugin, names))
    }
    if (findSchema(definition.config, rest)) return schema
    const known = knownKeys(definition.config).join(', ') || 'none'
    return refuse(`unknown key; the plugin knows ${known}`, findMeant(definition, rest))
  }

  /**
   * Reloads plugins one by one. Those that the caller runs in are not awaited: they reload after its answer. They come
   * last, because a reload that waits for the caller holds up all that are queued behind it.
   */
  async #reloadPlugins(plugins: readonly string[]): Promise<Pick<AppliedChange, 'reloaded' | 'later' | 'failed'>> {
    const { host } = this.#deps
    const callers = new Set(runningCalls().map(({ plugin }) => plugin))
    const later = plugins.filter((plugin) => host.subtree(plugin).some((name) => callers.has(name)))
    const reloaded: string[] = []
    const failed: { plugin: string; reason: string }[] = []
    for (const plugin of [...plugins.filter((name) => !later.includes(name)), ...later]) {
      const done = host.reconfigure(plugin).then(
        () => {
          reloaded.push(plugin)
        },
        (error: unknown) => {
          failed.push({ plugin, reason: messageOf(error) })
        },
      )
      // The status of the plugin shows how the later ones end.
      if (!later.includes(plugin)) await done
    }
    return { reloaded, later, failed }
  }
}

function valueAt(tree: unknown, path: readonly string[]): unknown {
  return path.reduce((inner, name) => (isTree(inner) ? inner[name] : undefined), tree)
}

/** The value of a key with `***` for secrets. Only the branch of the key is copied. */
function redactKey(path: readonly string[], value: unknown, schema: Schema): unknown {
  return valueAt(redact(nest(path, value), schema), path)
}

function fileOnlyRefusal(path: readonly string[], reason: string): Refusal {
  const key = path.join('.')
  return new Refusal(
    'forbidden',
    `${key} is set in the file only (${reason}): write it into config.toml in the home of the daemon, then reload`,
    { details: { key, file: 'config.toml' } },
  )
}
const fileOf = (config: Config): string => join(config.home_dir, 'config.toml')
/** A problem of the files as a refusal with line, key and expected value; any other error unchanged. */
function refusalOf(error: unknown, code: 'invalid_request' | 'conflict'): unknown {
  if (!(error instanceof ConfigError)) return error
  const problems = error.problems.map(({ line, key, expected, found }) => omitUndefined({ key, line, expected, found }))
  // Callers do not learn where the home is on this machine.
  const message = error.problems.map((problem) => printProblem({ ...problem, file: basename(problem.file) })).join('\n')
  return new Refusal(code, message, { details: { problems }, cause: error })
}
