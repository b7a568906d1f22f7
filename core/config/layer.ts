import * as v from 'valibot'
import { findNearest, suggest } from '../schema/nearest.ts'
import { explainIssue, MAX_ISSUES } from './problem.ts'
import type { ConfigProblem } from './problem.ts'
import { describe, findChild, isSecret, isTable, isTree, knownKeys, unwrap } from './shape.ts'
import type { Schema, Tree } from './shape.ts'

/** One source of configuration: a file, the environment, the flags. */
export interface Layer {
  readonly file: string
  /** Its values. Texts of the environment and of flags become what the schema wants of their key. */
  read(schema: Schema): Tree
  /** Where a key is written in it, as far as that can be told. */
  place(path: readonly string[]): {
    readonly line?: number | undefined
    readonly column?: number | undefined
    readonly name?: string | undefined
  }
}
/** A key that the schema does not have. */
export interface UnknownKey {
  readonly path: readonly string[]
  /** How the layer names it, when that differs from the key, such as `SVC_LOG_LEVLE`. */
  readonly name: string | undefined
  readonly warning: string
}
export interface LayerCheck {
  readonly problems: readonly ConfigProblem[]
  readonly unknown: readonly UnknownKey[]
}

/** Compares one layer with the schema by itself, so that a wrong value is found also where a later layer hides it. */
export function checkLayer(schema: Schema, layer: Layer, tree: Tree): LayerCheck {
  const problems: ConfigProblem[] = []
  const unknownKeys: UnknownKey[] = []

  const wrong = (path: readonly string[], expected: string, value: unknown, hidden: boolean): void => {
    problems.push({
      file: layer.file,
      ...layer.place(path),
      key: path.join('.'),
      expected,
      found: describe(value, hidden),
    })
  }
  const unknown = (path: readonly string[], parent: Schema): void => {
    const key = path.at(-1) ?? ''
    const { line, name } = layer.place(path)
    const nearest = findNearest(key, knownKeys(parent)) ?? findElsewhere(schema, key)
    const place = `${layer.file}${line === undefined ? '' : `:${line}`}`
    const warning = `${place}: unknown key "${name ?? path.join('.')}" is ignored${suggest(nearest)}`
    unknownKeys.push({ path, name, warning })
  }
  const walk = (part: Schema, value: unknown, path: readonly string[], parent?: Schema): void => {
    if (value === undefined) return
    const hidden = isSecret(part, path.at(-1) ?? '')
    if (unwrap(part).type === 'unknown') return
    if (isTable(part)) {
      if (!isTree(value)) return wrong(path, `a table${suggestKey(parent, path)}`, value, hidden)
      for (const [key, item] of Object.entries(value)) {
        const child = findChild(part, key)
        if (child) walk(child, item, [...path, key], part)
        else unknown([...path, key], part)
      }
      return
    }
    const result = v.safeParse(part, value)
    for (const issue of result.issues?.slice(0, MAX_ISSUES) ?? []) {
      // Of a list: the item that is wrong.
      const { path: inside, ...what } = explainIssue(part, issue)
      const key = [...path, ...inside]
      problems.push({ file: layer.file, ...layer.place(path), ...layer.place(key), key: key.join('.'), ...what })
    }
  }
  walk(schema, tree, [])
  return { problems, unknown: unknownKeys }
}

/** A misspelt key beside sections of any name, as in `[plugins]`, is taken for one of them. */
function suggestKey(parent: Schema | undefined, path: readonly string[]): string {
  const key = path.at(-1) ?? ''
  const known = parent === undefined ? [] : knownKeys(parent)
  const nearest = known.includes(key) ? undefined : findNearest(key, known)
  return nearest === undefined ? '' : ` (did you mean "${nearest}"?)`
}

/**
 * The full name of a key that exists in another section, such as `rate_limit.tokens_per_minute` for
 * `tokens_per_minute`.
 */
function findElsewhere(schema: Schema, key: string): string | undefined {
  for (const name of knownKeys(schema)) {
    const child = findChild(schema, name)
    if (child && knownKeys(child).includes(key)) return `${name}.${key}`
  }
  return undefined
}

/** A copy of `below` in which the values of `above` win; tables are joined, everything else is replaced. */
export function overlay(
  below: Tree,
  above: Tree,
  onValue: (path: readonly string[]) => void = () => {},
  path: readonly string[] = [],
): Tree {
  const joined: Record<string, unknown> = { ...below }
  for (const [key, value] of Object.entries(above)) {
    // Keys that would reach a prototype are no configuration.
    if (value === undefined || key === '__proto__') continue
    const here = [...path, key]
    const old = joined[key]
    if (isTree(value)) joined[key] = overlay(isTree(old) ? old : {}, value, onValue, here)
    else {
      joined[key] = value
      onValue(here)
    }
  }
  return joined
}
/** `{ 'a.b': 1 }` as `{ a: { b: 1 } }`. */
export function toTree(dotted: Readonly<Record<string, unknown>>): Tree {
  return Object.entries(dotted).reduce<Tree>((tree, [key, value]) => overlay(tree, nest(key.split('.'), value)), {})
}
export function nest(path: readonly string[], value: unknown): Tree {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Tree
}
/** `plugins."a.b".c` into its parts. */
export function splitKey(key: string): string[] {
  return [...key.matchAll(/"([^"]*)"|[^.]+/g)].map((match) => match[1] ?? match[0])
}
