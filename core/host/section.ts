import { existsSync } from 'node:fs'
import * as v from 'valibot'
import { findNearest, suggest } from '../schema/nearest.ts'
import { ConfigError, findPlace, issueProblems, NOWHERE } from '../config/problem.ts'
import type { ConfigProblem } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import { reservedPluginNames } from '../config/schema.ts'
import { findSchema, isTable, isTree, knownKeys } from '../config/shape.ts'
import type { Schema } from '../config/shape.ts'
import type { AnyPlugin } from './define.ts'
import type { PluginStatus } from './daemon.ts'

/** Dotted key to where its value is written, such as `/home/me/.svc/config.toml:3`. */
export type Sources = ReadonlyMap<string, string>

/** The closest known key to an unknown one: in a section of the plugin, else the nearest key. */
export function findMeant({ name, config, sections = {} }: AnyPlugin, path: readonly string[]): string | undefined {
  const candidates = Object.keys(sections).flatMap((section) => [
    [section, ...path],
    [section, ...path.slice(1)],
  ])
  const elsewhere = [path, ...candidates].find(([section = '', ...rest]) => {
    const schema = Object.hasOwn(sections, section) ? sections[section] : undefined
    return schema !== undefined && findSchema(schema, rest) !== undefined
  })
  if (elsewhere) return elsewhere.join('.')
  const parent = path.slice(0, -1)
  const schema = findSchema(config, parent)
  const nearest = findNearest(path.at(-1) ?? '', schema ? knownKeys(schema) : [])
  return nearest === undefined ? undefined : ['plugins', name, ...parent, nearest].join('.')
}

/**
 * The configuration of a plugin: `[plugins.<name>]` and the sections it owns, parsed by its schemas. Throws
 * `ConfigError` with each invalid key, its place and what was expected.
 */
export function parseSections(
  { name, config: schema, sections = {} }: AnyPlugin,
  config: Config,
  sources: Sources,
): Readonly<Record<string, unknown>> {
  const problems: ConfigProblem[] = []
  const parse = (part: v.GenericSchema, value: unknown, path: readonly string[]): unknown => {
    const result = v.safeParse(part, value)
    if (!result.success) problems.push(...issueProblems(part, result.issues, sources, path))
    return result.output
  }
  const own = parse(schema, config.plugins[name] ?? {}, ['plugins', name])
  const owned = Object.entries(sections).map(([key, part]) => [key, parse(part as v.GenericSchema, config[key], [key])])
  if (problems.length > 0) throw new ConfigError(problems)
  return { ...(isTree(own) ? own : {}), ...Object.fromEntries(owned) }
}

/** Whether an invalid value was written by somebody, rather than a required one omitted. */
export function isWritten(error: unknown): error is ConfigError {
  return error instanceof ConfigError && error.problems.some(({ file }) => file !== NOWHERE)
}

/** Unknown keys below `plugins`, and plugin folders that do not exist. */
export function sectionWarnings(
  { plugins }: Config,
  statuses: readonly Pick<PluginStatus, 'name' | 'state'>[],
  definitions: readonly AnyPlugin[],
  sources: Sources,
): readonly string[] {
  const names = statuses.map(({ name }) => name)
  const warn = (path: readonly string[], text: string, meant: string | undefined): string =>
    `${findPlace(sources, path, path.length) ?? NOWHERE}: ${text}${suggest(meant)}`
  const sections = Object.entries(plugins)
    .filter(([name]) => !reservedPluginNames.includes(name))
    .flatMap(([name, section]) => {
      const definition = definitions.find((one) => one.name === name)
      if (definition)
        return unknownKeys(definition.config, section).map((path) => {
          const key = ['plugins', name, ...path]
          return warn(key, `unknown key "${key.join('.')}" is ignored`, findMeant(definition, path))
        })
      if (names.includes(name)) return []
      const nearest = findNearest(name, [...names, ...reservedPluginNames])
      return [warn(['plugins', name], `[plugins.${name}] has no effect, there is no plugin "${name}"`, nearest)]
    })
  const disabled = plugins.disabled
    .filter((name) => !names.includes(name))
    .map((name) =>
      warn(['plugins', 'disabled'], `plugins.disabled: there is no plugin "${name}"`, findNearest(name, names)),
    )
  const missing = plugins.paths
    .filter((path) => !existsSync(path))
    .map((path) => warn(['plugins', 'paths'], `plugins.paths: ${path} does not exist`, undefined))
  return [...sections, ...disabled, ...missing]
}

/** Dotted keys below `plugins` that have no effect, because no plugin knows them. */
export function ignoredKeys(
  { plugins }: Config,
  definitions: readonly AnyPlugin[],
  known: readonly string[],
): string[] {
  return Object.entries(plugins)
    .filter(([name]) => !reservedPluginNames.includes(name))
    .flatMap(([name, section]) => {
      const definition = definitions.find((one) => one.name === name)
      if (definition) return unknownKeys(definition.config, section).map((path) => ['plugins', name, ...path].join('.'))
      return known.includes(name) ? [] : [`plugins.${name}`]
    })
}

function unknownKeys(config: Schema, value: unknown, path: readonly string[] = []): readonly string[][] {
  const schema = findSchema(config, path)
  if (!isTree(value) || (schema && !isTable(schema))) return []
  return Object.entries(value).flatMap(([key, item]) => {
    const here = [...path, key]
    return findSchema(config, here) ? unknownKeys(config, item, here) : [here]
  })
}
