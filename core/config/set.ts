import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { makeFolder } from '../storage/make-folder.ts'
import { checkLayer, nest, overlay, splitKey } from './layer.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import { MASKED_SECRET_MESSAGE } from '../schema/secret.ts'
import { ConfigError } from './problem.ts'
import { findMask } from './redact.ts'
import { findChild, findSchema, isTable, isTree, knownKeys, unwrap } from './shape.ts'
import type { Schema, Tree } from './shape.ts'
import { readText, readToml } from './sources.ts'
import { fromText } from './text-value.ts'
import { indexToml } from './toml-index.ts'
import type { KeyPlace } from './toml-index.ts'
import { parseToml, toToml } from './toml-text.ts'
import { commandLine } from '../process/command-name.ts'

/**
 * Writes one dotted key into a `config.toml` (made when missing) and leaves every other line and comment as it is. The
 * file is replaced in one step with mode 0600. Throws `ConfigError` when the key is unknown, the value does not fit, or
 * the file is not valid.
 */
export async function setConfigValue(file: string, key: string, value: unknown, schema: Schema): Promise<void> {
  const path = splitKey(key)
  checkConfigValue(file, key, value, schema)
  const target = existsSync(file) ? await realpath(file) : file
  const before = existsSync(target) ? readText(target) : ''
  if (before !== '') await readToml(target) // reports a broken file with its line
  await replaceFile(target, editToml(before, path, value, file))
}
/** Throws `ConfigError` for a key that is unknown and a value that does not fit it. */
export function checkConfigValue(file: string, key: string, value: unknown, schema: Schema): void {
  const path = splitKey(key)
  checkConfigKey(file, path, schema)
  const tree = nest(path, value)
  const masked = findMask(tree, schema)
  if (masked) throw new ConfigError([{ file, key: masked.join('.'), message: MASKED_SECRET_MESSAGE }])
  const { problems } = checkLayer(schema, { file, read: () => tree, place: () => ({}) }, tree)
  if (problems.length > 0) throw new ConfigError(problems)
}
/** The value a text on the command line stands for, by the schema of its key. */
export function toConfigValue(key: string, text: string, schema: Schema): unknown {
  return fromText(findSchema(schema, splitKey(key)), text)
}

/** Throws `ConfigError` for a key that is unknown or is a whole section. */
export function checkConfigKey(file: string, path: readonly string[], schema: Schema): void {
  const key = path.join('.')
  if (path.length === 0 || ['__proto__', 'constructor', 'prototype'].some((name) => path.includes(name)))
    throw new ConfigError([{ file, key, message: 'not a key' }])
  let found = schema
  let parent = schema
  for (const [depth, part] of path.entries()) {
    const child = findChild(found, part)
    if (!child) {
      const nearest = findNearest(part, knownKeys(found))
      const known =
        nearest === undefined
          ? `; ${commandLine('config schema')} lists the known keys`
          : suggest([...path.slice(0, depth), nearest].join('.'))
      throw new ConfigError([{ file, key, message: `unknown key${known}` }])
    }
    parent = found
    found = child
  }
  // [plugins.<name>] and a named entry of a section are sections as well.
  const isSection =
    path.length === 1 || (path.length === 2 && (path[0] === 'plugins' || unwrap(parent).type === 'record'))
  if (!isTable(found) || !(isSection || knownKeys(found).length > 0)) return
  const known = knownKeys(found).join(', ')
  throw new ConfigError([
    { file, key, message: `is a section; set one of its keys${known === '' ? '' : `: ${known}`}` },
  ])
}

/** The text with one value changed or added. Throws when the result would say anything else than that. */
export function editToml(text: string, path: readonly string[], value: unknown, file = 'config.toml'): string {
  const places = indexToml(text)
  const edited = replaceValue(text, places, path, value) ?? insertValue(text, places, path, value)
  const expected = overlay(without(plain(parseToml(text)), path), nest(path, value))
  if (!isDeepStrictEqual(plain(parseToml(edited)), expected)) {
    throw new ConfigError([
      {
        file,
        key: path.join('.'),
        message: 'the file is written in a way that cannot be changed safely; edit it by hand',
      },
    ])
  }
  return edited
}
function replaceValue(
  text: string,
  places: readonly KeyPlace[],
  path: readonly string[],
  value: unknown,
): string | undefined {
  // The longest written key that is the wanted one or an inline table around it.
  const place = places.findLast((one) => one.kind === 'value' && one.path.every((part, depth) => path[depth] === part))
  if (!place) return undefined
  const inside = path.slice(place.path.length)
  const old = plain(parseToml(`x = ${text.slice(place.start, place.end)}`))['x']
  const next = inside.length === 0 ? value : overlay(without(isTree(old) ? old : {}, inside), nest(inside, value))
  return `${text.slice(0, place.start)}${toToml(next)}${text.slice(place.end)}`
}
function insertValue(text: string, places: readonly KeyPlace[], path: readonly string[], value: unknown): string {
  const table = path.slice(0, -1)
  const same = (a: readonly string[], b: readonly string[]): boolean =>
    a.length === b.length && a.every((part, depth) => part === b[depth])
  const header = places.find((place) => place.kind === 'table' && same(place.path, table))
  // `rate_limit.x = 1` makes a table that must not get a header, so its next key is written the same way.
  const dotted = places.findLast(
    (place) =>
      place.kind === 'value' &&
      place.path.length > place.table.length + 1 &&
      table.length > place.table.length &&
      table.every((part, depth) => place.path[depth] === part),
  )
  const key = (parts: readonly string[]): string =>
    parts.map((part) => (/^[\w-]+$/.test(part) ? part : JSON.stringify(part))).join('.')
  if (dotted) return insertLine(text, dotted.end, `${key(path.slice(dotted.table.length))} = ${toToml(value)}`)
  if (header || table.length === 0) {
    const last = places.findLast((place) => place.kind === 'value' && same(place.table, table))
    const line = `${key(path.slice(-1))} = ${toToml(value)}`
    if (last) return insertLine(text, last.end, line)
    if (header) return insertLine(text, header.start, line)
    const first = places.find((place) => place.kind === 'table')
    if (first) return insertBefore(text, first.line, `${line}\n\n`)
    return `${endLine(text)}${line}\n`
  }
  return `${endLine(text)}${text.trim() === '' ? '' : '\n'}[${key(table)}]\n${key(path.slice(-1))} = ${toToml(value)}\n`
}
function insertLine(text: string, after: number, line: string): string {
  const end = text.indexOf('\n', after)
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  return end < 0
    ? `${text}${newline}${line}${newline}`
    : `${text.slice(0, end + 1)}${line}${newline}${text.slice(end + 1)}`
}
/** Above a line and the comments that belong to it. */
function insertBefore(text: string, line: number, added: string): string {
  const lines = text.split('\n')
  let at = line - 1
  while (at > 0 && lines[at - 1]?.trimStart().startsWith('#')) at--
  return [...lines.slice(0, at), ...added.split('\n').slice(0, -1), ...lines.slice(at)].join('\n')
}
function endLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}

function plain(tree: object): Tree {
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, isTree(value) ? plain(value) : value]))
}
function without(tree: Tree, path: readonly string[]): Tree {
  const [key, ...rest] = path
  if (key === undefined || !Object.hasOwn(tree, key)) return tree
  const { [key]: old, ...others } = tree
  return rest.length > 0 && isTree(old) ? { ...tree, [key]: without(old, rest) } : others
}

/** Written beside it, flushed, then renamed: a reader sees the old file or the new one. */
async function replaceFile(file: string, text: string): Promise<void> {
  makeFolder(dirname(file))
  const part = join(dirname(file), `.config.${randomBytes(6).toString('hex')}.tmp`)
  try {
    const handle = await open(part, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(part, file)
    const folder = await open(dirname(file), 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}
