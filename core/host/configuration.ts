import { basename, join } from 'node:path'
import { isLoopback, parseListenAddr } from '../config/listen.ts'
import { isMarked } from '../config/live.ts'
import type { ConfigChange, LiveConfig } from '../config/live.ts'
import { nest, overlay, splitKey } from '../config/layer.ts'
import { ConfigError, printProblem } from '../config/problem.ts'
import { redact } from '../config/redact.ts'
import { findSchema, knownKeys } from '../config/shape.ts'
import type { Config, LoadedConfig } from '../config/load.ts'
import type { Applied, Configuration } from '../config/configuration.ts'
import { Refusal } from '../errors/error.ts'
import { runningCalls } from '../scope/call.ts'
import type { AnyPlugin } from './define.ts'
import type { Host } from './host.ts'
import { parseSection, sectionWarnings } from './section.ts'
import type { Sources } from './section.ts'

export interface ConfigurationParts {
  readonly live: LiveConfig
  readonly host: Host
  /** Reads every source again. Absent: the daemon was not made from files. */
  readonly reread: (() => Promise<LoadedConfig>) | undefined
  /** The section a plugin would get. */
  readonly section: (config: Config, plugin: string) => unknown
  /** Plugin that calls the addresses of `[providers]`. */
  readonly providersPlugin: string
  /** The new values hold: tells those that keep a copy. */
  readonly taken: (config: Config) => void
}

/** Sections at the top of the file that one plugin reads (`section` in `config/parts.ts`). */
const sectionOwners: Readonly<Record<string, string>> = {
  budget: 'budgets',
  webhook_triggers: 'webhooks',
  pairing: 'pairing',
  external_auth: 'sso',
}

export function createConfiguration(parts: ConfigurationParts): Configuration {
  const { live, host } = parts
  let last: Promise<unknown> = Promise.resolve()
  /** One change at a time, so that each is compared with what the one before left. */
  const inTurn = <T>(change: () => Promise<T>): Promise<T> => {
    const turn = last.then(change)
    // How it failed is told to who asked for it.
    last = turn.catch(() => undefined)
    return turn
  }

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
        if (definition) parseSection(definition, parts.section(config, plugin), sources)
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
    const named = changed.flatMap((key) => {
      const [section, name] = splitKey(key)
      return section === 'providers' || section === 'fallback_models'
        ? [parts.providersPlugin]
        : section === 'plugins' && name !== undefined
          ? [name]
          : section !== undefined && Object.hasOwn(sectionOwners, section)
            ? [sectionOwners[section] ?? '']
            : []
    })
    return [...new Set(named)].filter((name) => loaded.has(name))
  }
  async function check(key: string, value: unknown): Promise<void> {
    const path = splitKey(key)
    // The parser of TOML is not needed before somebody writes.
    const { checkConfigValue } = await import('../config/set.ts')
    try {
      checkConfigValue('the value', key, value)
    } catch (error) {
      throw refusalOf(error, 'invalid_request')
    }
    if (path[0] === 'providers' && ['api_key', 'api_keys'].includes(path[2] ?? '')) {
      throw new Refusal(
        'forbidden',
        `Keys of providers go to the vault: POST /api/providers/${path[1] ?? '{name}'}/key`,
        { details: { key } },
      )
    }
    const plugin = path[0] === 'plugins' && path.length > 2 ? pluginKnowing(path) : undefined
    if (isMarked(path, 'file_only') || (plugin && isMarked(path.slice(2), 'file_only', plugin.config))) {
      throw new Refusal(
        'forbidden',
        `${key} widens what the daemon runs, opens or reaches: write it into config.toml on the machine, then reload`,
        { details: { key } },
      )
    }
    const { config, change } = live.plan(overlay(live.current, nest(path, value)) as Config)
    checkWhole(config, change, new Map([[key, 'the value']]))
  }
  /** The plugin a key is for. What it takes is known only here: the schema of the file lets every key below `plugins` pass. */
  function pluginKnowing([first = '', plugin = '', ...rest]: readonly string[]): AnyPlugin {
    const key = [first, plugin, ...rest].join('.')
    const definition = host.definitions().find(({ name }) => name === plugin)
    if (!definition)
      throw new Refusal(
        'invalid_request',
        `${key}: no plugin "${plugin}" is loaded that could check it: write it into config.toml on the machine`,
        { details: { key } },
      )
    if (findSchema(definition.config, rest)) return definition
    throw new Refusal(
      'invalid_request',
      `${key}: unknown key; the plugin knows ${knownKeys(definition.config).join(', ') || 'none'}`,
      { details: { key } },
    )
  }
  async function take(): Promise<Applied> {
    if (!parts.reread) throw new Refusal('service_unavailable', 'This daemon was started without configuration files')
    const loaded = await parts.reread()
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
    read: () => redact(live.current) as Readonly<Record<string, unknown>>,
    sources: () => live.sources,
    restart: () => live.restart,
    schema: async () =>
      (await import('../config/json-schema.ts')).configJsonSchema(
        new Map(host.definitions().map(({ name, config }) => [name, config])),
      ),
    check,
    set: (key, value) =>
      inTurn(async () => {
        await check(key, value)
        const { setConfigValue } = await import('../config/set.ts')
        try {
          await setConfigValue(fileOf(live.current), key, value)
        } catch (error) {
          throw refusalOf(error, 'conflict')
        }
        try {
          return await take()
        } catch (error) {
          throw new Refusal(
            'conflict',
            `${key} is written, but the configuration as a whole cannot be used and the old one goes on: ${reasonOf(refusalOf(error, 'conflict'))}`,
            { details: { key, status: 'saved_reload_failed' }, cause: error },
          )
        }
      }),
    reload: () =>
      inTurn(async () => {
        try {
          return await take()
        } catch (error) {
          throw refusalOf(error, 'invalid_request')
        }
      }),
  }
}

const fileOf = (config: Config): string => join(config.home_dir, 'config.toml')
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
/** What is wrong with the files is told to the caller, with place, key and what was expected; anything else stays what it is. */
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
