import { existsSync } from 'node:fs'
import * as v from 'valibot'
import { findNearest } from '../config/nearest.ts'
import { ConfigError } from '../config/problem.ts'
import type { ConfigProblem } from '../config/problem.ts'
import type { Config } from '../config/schema.ts'
import { Plugins } from '../config/schema.ts'
import { describe, expectation, findChild, findSchema, isSecret, isTable, isTree, knownKeys } from '../config/shape.ts'
import type { Schema } from '../config/shape.ts'
import type { AnyPlugin } from './define.ts'
import type { PluginStatus } from './daemon.ts'

/** Dotted key to where its value is written, such as `/home/me/.svc/config.toml:3`. */
export type Sources = ReadonlyMap<string, string>

const NOWHERE = 'configuration'

/** The plugin's section as its schema has it. Throws `ConfigError` with each wrong key, where it is written and what was expected. */
export function parseSection({ name, config }: AnyPlugin, section: unknown, sources: Sources): unknown {
  const result = v.safeParse(config, section ?? {})
  if (result.success) return result.output
  throw new ConfigError(
    result.issues.slice(0, 5).map((issue): ConfigProblem => {
      const path = (v.getDotPath(issue) ?? '').split('.').filter((part) => part !== '')
      const found = findSchema(config, path)
      const key = ['plugins', name, ...path]
      return {
        // What stands at the top of the file for a plugin is not below its name.
        file: placeOf(sources, key, 3) ?? placeOf(sources, path) ?? NOWHERE,
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

/** Keys below `plugins` that nothing knows, and folders that are not there. */
export function sectionWarnings(
  { plugins }: Config,
  statuses: readonly PluginStatus[],
  definitions: readonly AnyPlugin[],
  sources: Sources,
): readonly string[] {
  const names = statuses.map(({ name }) => name)
  const say = (path: readonly string[], text: string, known: Iterable<string>): string => {
    const nearest = findNearest(path.at(-1) ?? '', known)
    return `${placeOf(sources, path, path.length) ?? NOWHERE}: ${text}${nearest === undefined ? '' : `; did you mean "${nearest}"?`}`
  }
  const own = new Set(knownKeys(Plugins))
  const sections = Object.entries(plugins)
    .filter(([name]) => !own.has(name))
    .flatMap(([name, section]) => {
      const definition = definitions.find((one) => one.name === name)
      if (definition)
        return unknownKeys(definition.config, section).map(({ path, known }) =>
          say(['plugins', name, ...path], `unknown key "plugins.${name}.${path.join('.')}" is ignored`, known),
        )
      return names.includes(name)
        ? []
        : [say(['plugins', name], `[plugins.${name}] has no effect, there is no plugin "${name}"`, [...names, ...own])]
    })
  return [
    ...sections,
    ...plugins.disabled
      .filter((name) => !names.includes(name))
      .map(
        (name) =>
          `${placeOf(sources, ['plugins', 'disabled']) ?? NOWHERE}: plugins.disabled: there is no plugin "${name}"`,
      ),
    ...plugins.paths
      .filter((path) => !existsSync(path))
      .map((path) => `${placeOf(sources, ['plugins', 'paths']) ?? NOWHERE}: plugins.paths: ${path} does not exist`),
  ]
}

function unknownKeys(
  schema: Schema,
  value: unknown,
  path: readonly string[] = [],
): readonly { readonly path: readonly string[]; readonly known: readonly string[] }[] {
  if (!isTree(value) || !isTable(schema)) return []
  return Object.entries(value).flatMap(([key, item]) => {
    const child = findChild(schema, key)
    return child ? unknownKeys(child, item, [...path, key]) : [{ path: [...path, key], known: knownKeys(schema) }]
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
