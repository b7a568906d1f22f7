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
import type { Applied, Configuration } from './configuration-service.ts'
import { Refusal } from '../errors/error.ts'
import { runningCalls } from '../scope/call.ts'
import { SerialQueue } from '../scope/queue.ts'
import type { Host } from './host.ts'
import { findMeant, parseSections, sectionWarnings } from './section.ts'
import type { Sources } from './section.ts'

export interface ConfigurationParts {
  readonly live: LiveConfig
  readonly host: Host
  /** Reads every source again. Absent: the daemon was not made from files. */
  readonly reread: (() => Promise<LoadedConfig>) | undefined
  /** The new values hold: tells those that keep a copy. */
  readonly taken: (config: Config) => void
}

export function createConfiguration(parts: ConfigurationParts): Configuration {
  const { live, host } = parts
  /** One change at a time, so that each is compared with what the one before left. */
  const changes = new SerialQueue()

  function checkWhole(config: Config, change: ConfigChange, sources: Sources): void {
    const { host: address } = parseListenAddr(live.current.listen_addr)
    // A key about to be set may be blank, which counts as none once it is read from the file.
    if (!config.api_key?.trim() && !config.allow_no_auth && (!isLoopback(address) || config.http.public)) {
      throw new Refusal('invalid_request', `api_key: other machines reach ${address}, so a key has to be set`, {
        details: { key: 'api_key' },
      })
    }
    for (const plugin of pluginsOf(change)) {
      const definition = host.definitions().find(({ name }) => name === plugin)
      try {
        if (definition) parseSections(definition, config, sources)
      } catch (error) {
        throw new Refusal('invalid_request', reasonOf(refusalOf(error, 'invalid_request')), {
          details: { plugin },
          cause: error,
        })
      }
    }
  }
  function pluginsOf({ changed }: ConfigChange): readonly string[] {
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
  async function check(key: string, value: unknown): Promise<void> {
    const path = splitKey(key)
    // The parser of TOML is not needed before somebody writes.
    const { checkConfigKey, checkConfigValue } = await import('../config/set.ts')
    const { findFileOnly } = await import('../config/find-file-only.ts')
    const schema = schemaFor(path)
    try {
      checkConfigKey('the value', path, schema)
      const found = findFileOnly(schema, path, value)
      if (found) throw fileOnlyRefusal(found.path, found.reason)
      checkConfigValue('the value', key, value, schema)
    } catch (error) {
      throw refusalOf(error, 'invalid_request')
    }
    const { config, change } = live.plan(overlay(live.current, nest(path, value)) as Config)
    checkWhole(config, change, new Map([[key, 'the value']]))
    if (live.current.api_key !== undefined && !config.api_key?.trim())
      throw fileOnlyRefusal(['api_key'], 'without a key everybody on this machine is the owner')
  }
  /** The schema that checks a key. Of a plugin's own section only that plugin knows it, so it has to be loaded. */
  function schemaFor([first = '', plugin = '', ...rest]: readonly string[]): Schema {
    const definitions = host.definitions()
    const { disabled } = live.current.plugins
    const schema = wholeSchema(host.known().filter(({ name }) => !disabled.includes(name)))
    if (first !== 'plugins' || rest.length === 0) return schema
    const key = [first, plugin, ...rest].join('.')
    const refuse = (text: string, nearest: string | undefined): never => {
      throw new Refusal('invalid_request', `${key}: ${text}${suggest(nearest)}`, { details: { key } })
    }
    const definition = definitions.find(({ name }) => name === plugin)
    if (!definition) {
      const names = host.plugins().map(({ name }) => name)
      return refuse(`no plugin "${plugin}" is loaded that could check it`, findNearest(plugin, names))
    }
    if (findSchema(definition.config, rest)) return schema
    const known = knownKeys(definition.config).join(', ') || 'none'
    return refuse(`unknown key; the plugin knows ${known}`, findMeant(definition, rest))
  }
  async function take(): Promise<Applied> {
    if (!parts.reread) throw new Refusal('service_unavailable', 'This daemon was started without configuration files')
    const loaded = (await parts.reread()).complete(host.known())
    const { config, change } = live.plan(loaded.config)
    checkWhole(config, change, loaded.sources)
    live.replace(config, loaded, change)
    parts.taken(config)
    const renewed = await renew(pluginsOf(change))
    return {
      ...change,
      warnings: [...loaded.warnings, ...sectionWarnings(config, host.plugins(), host.definitions(), loaded.sources)],
      ...renewed,
    }
  }
  /** Plugins with a new section are replaced by themselves; those the caller runs in wait until it is answered. */
  async function renew(plugins: readonly string[]): Promise<Pick<Applied, 'reloaded' | 'later' | 'failed'>> {
    const callers = new Set(runningCalls().map(({ plugin }) => plugin))
    const later = plugins.filter((plugin) => host.subtree(plugin).some((name) => callers.has(name)))
    const reloaded: string[] = []
    const failed: { plugin: string; reason: string }[] = []
    for (const plugin of plugins) {
      const done = host.reconfigure(plugin).then(
        () => {
          reloaded.push(plugin)
        },
        (error: unknown) => {
          failed.push({ plugin, reason: error instanceof Error ? error.message : String(error) })
        },
      )
      // How those end is told by the status of the plugin.
      if (!later.includes(plugin)) await done
    }
    return { reloaded, later, failed }
  }

  return {
    read: () => redact(live.current, live.schema) as Readonly<Record<string, unknown>>,
    // Only the branch of the key is copied, because plugins read single keys often.
    shown: (key, ...value) => {
      const path = splitKey(key)
      const found = value.length === 0 ? valueAt(live.current, path) : value[0]
      return valueAt(redact(nest(path, found), live.schema), path)
    },
    sources: () => live.sources,
    restart: () => live.restart,
    schema: async () => (await import('../config/json-schema.ts')).configJsonSchema(host.definitions()),
    check,
    set: (key, value) =>
      changes.run(async () => {
        await check(key, value)
        const { setConfigValue } = await import('../config/set.ts')
        try {
          await setConfigValue(fileOf(live.current), key, value, schemaFor(splitKey(key)))
        } catch (error) {
          throw refusalOf(error, 'conflict')
        }
        try {
          return await take()
        } catch (error) {
          throw new Refusal(
            'conflict',
            `${key} is written, but the configuration as a whole cannot be used and the old one goes on: ` +
              reasonOf(refusalOf(error, 'conflict')),
            { details: { key, status: 'saved_reload_failed' }, cause: error },
          )
        }
      }),
    reload: () =>
      changes.run(async () => {
        try {
          return await take()
        } catch (error) {
          throw refusalOf(error, 'invalid_request')
        }
      }),
  }
}

function valueAt(tree: unknown, path: readonly string[]): unknown {
  return path.reduce((inner, name) => (isTree(inner) ? inner[name] : undefined), tree)
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
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
/**
 * What is wrong with the files is told to the caller, with place, key and what was expected; anything else stays what
 * it is.
 */
function refusalOf(error: unknown, code: 'invalid_request' | 'conflict'): unknown {
  if (!(error instanceof ConfigError)) return error
  const problems = error.problems.map(({ line, key, expected, found }) => ({
    ...(key !== undefined && { key }),
    ...(line !== undefined && { line }),
    ...(expected !== undefined && { expected }),
    ...(found !== undefined && { found }),
  }))
  // Where the home lies on the machine is nobody's business here.
  const message = error.problems.map((problem) => printProblem({ ...problem, file: basename(problem.file) })).join('\n')
  return new Refusal(code, message, { details: { problems }, cause: error })
}
