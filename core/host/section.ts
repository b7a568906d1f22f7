import { existsSync } from 'node:fs'
import * as v from 'valibot'
import { findNearest, suggest } from '../schema/nearest.ts'
import { ConfigError } from '../config/problem.ts'
import type { ConfigProblem } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import { ConfigSchema, Plugins, pluginSections } from '../config/schema.ts'
import { describe, expectation, findSchema, isSecret, isTable, isTree, knownKeys } from '../config/shape.ts'
import type { Schema } from '../config/shape.ts'
import type { AnyPlugin } from './define.ts'
import type { PluginStatus } from './daemon.ts'

/** Dotted key to where its value is written, such as `/home/me/.svc/config.toml:3`. */
export type Sources = ReadonlyMap<string, string>

const NOWHERE = 'configuration'

/** The schema of a key below `[plugins.<name>]`; `undefined` for a key that is not read there. */
export function findOwn({ config, sections = [] }: AnyPlugin, path: readonly string[]): Schema | undefined {
  return sections.some((section) => section === path[0]) ? undefined : findSchema(config, path)
}
/** Names of the keys that are read below `[plugins.<name>]`. */
export function ownKeys({ config, sections = [] }: AnyPlugin): readonly string[] {
  return knownKeys(config).filter((key) => !sections.some((section) => section === key))
}
/** The key that was meant by one that `[plugins.<name>]` does not have: in a section of the plugin, else the nearest. */
export function findMeant(definition: AnyPlugin, path: readonly string[]): string | undefined {
  const { name, sections = [] } = definition
  const candidates = [
    path,
    ...sections.flatMap((section) => [
      [section, ...path],
      [section, ...path.slice(1)],
    ]),
  ]
  const elsewhere = candidates.find(
    (key) => sections.some((section) => section === key[0]) && findSchema(ConfigSchema, key) !== undefined,
  )
  if (elsewhere) return elsewhere.join('.')
  const parent = path.slice(0, -1)
  const schema = findOwn(definition, parent)
  const known = parent.length === 0 ? ownKeys(definition) : schema ? knownKeys(schema) : []
  const nearest = findNearest(path.at(-1) ?? '', known)
  return nearest === undefined ? undefined : ['plugins', name, ...parent, nearest].join('.')
}

/** The plugin's section as its schema has it. Throws `ConfigError` with each wrong key, where it is written and what was expected. */
export function parseSection({ name, config, sections = [] }: AnyPlugin, section: unknown, sources: Sources): unknown {
  const result = v.safeParse(config, section ?? {})
  if (result.success) return result.output
  throw new ConfigError(
    result.issues.slice(0, 5).map((issue): ConfigProblem => {
      const path = (v.getDotPath(issue) ?? '').split('.').filter((part) => part !== '')
      const found = findSchema(config, path)
      const atTop = sections.some((own) => own === path[0])
      const key = atTop ? path : ['plugins', name, ...path]
      return {
        file: placeOf(sources, key, atTop ? 1 : 3) ?? NOWHERE,
        key: key.join('.'),
        expected: found ? expectation(found) : (issue.expected ?? issue.message),
        found: issue.input === undefined ? 'nothing' : describe(issue.input, isSecret(found, path.at(-1) ?? '')),
      }
    }),
  )
}

/** Whether somebody wrote what is wrong, and not only left out what a plugin needs. */
export function isWritten(error: unknown): error is ConfigError {
  return error instanceof ConfigError && error.problems.some(({ file }) => file !== NOWHERE)
}

/** Keys below `plugins` that nothing knows, sections that nobody reads, and folders that are not there. */
export function sectionWarnings(
  { plugins }: Config,
  statuses: readonly Pick<PluginStatus, 'name' | 'state'>[],
  definitions: readonly AnyPlugin[],
  sources: Sources,
): readonly string[] {
  const names = statuses.map(({ name }) => name)
  const say = (path: readonly string[], text: string, meant: string | undefined): string =>
    `${placeOf(sources, path, path.length) ?? NOWHERE}: ${text}${suggest(meant)}`
  const own = new Set(knownKeys(Plugins))
  const sections = Object.entries(plugins)
    .filter(([name]) => !own.has(name))
    .flatMap(([name, section]) => {
      const definition = definitions.find((one) => one.name === name)
      if (definition)
        return unknownKeys(definition, section).map((path) =>
          say(
            ['plugins', name, ...path],
            `unknown key "plugins.${name}.${path.join('.')}" is ignored`,
            findMeant(definition, path),
          ),
        )
      return names.includes(name)
        ? []
        : [
            say(
              ['plugins', name],
              `[plugins.${name}] has no effect, there is no plugin "${name}"`,
              findNearest(name, [...names, ...own]),
            ),
          ]
    })
  const owned = new Set<string>(definitions.flatMap((definition) => definition.sections ?? []))
  // The owner of a section may have failed with it, which says more.
  const unread = statuses.some(({ state }) => state === 'failed')
    ? []
    : pluginSections.filter(
        (key) => !owned.has(key) && [...sources.keys()].some((path) => path === key || path.startsWith(`${key}.`)),
      )
  return [
    ...sections,
    ...unread.map((key) => say([key], `${key} has no effect, no plugin that is loaded reads it`, undefined)),
    ...plugins.disabled
      .filter((name) => !names.includes(name))
      .map((name) =>
        say(['plugins', 'disabled'], `plugins.disabled: there is no plugin "${name}"`, findNearest(name, names)),
      ),
    ...plugins.paths
      .filter((path) => !existsSync(path))
      .map((path) => `${placeOf(sources, ['plugins', 'paths']) ?? NOWHERE}: plugins.paths: ${path} does not exist`),
  ]
}

function unknownKeys(definition: AnyPlugin, value: unknown, path: readonly string[] = []): readonly string[][] {
  const schema = findOwn(definition, path)
  if (!isTree(value) || (schema && !isTable(schema))) return []
  return Object.entries(value).flatMap(([key, item]) => {
    const here = [...path, key]
    return findOwn(definition, here) ? unknownKeys(definition, item, here) : [here]
  })
}

/** Where a key is written, else a list that holds it (no shorter than `least`), else the first key below it. */
function placeOf(sources: Sources, path: readonly string[], least = 1): string | undefined {
  for (let length = path.length; length >= least; length--) {
    const place = sources.get(path.slice(0, length).join('.'))
    if (place !== undefined) return place
  }
  const below = `${path.join('.')}.`
  for (const [key, place] of sources) if (path.length > 0 && key.startsWith(below)) return place
  return undefined
}
