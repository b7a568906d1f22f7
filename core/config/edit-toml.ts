import { isDeepStrictEqual } from 'node:util'
import { nest, overlay } from './layer.ts'
import { ConfigError } from './problem.ts'
import { isTree } from './shape.ts'
import type { Tree } from './shape.ts'
import { indexToml } from './toml-index.ts'
import type { KeyPlace } from './toml-index.ts'
import { parseToml, toToml } from './toml-text.ts'

/**
 * The text with one value changed, added or, where it is `undefined`, removed; every other line and comment stays. Throws
 * when the result would say anything else than that.
 */
export function editToml(text: string, path: readonly string[], value: unknown, file = 'config.toml'): string {
  const places = indexToml(text)
  const edited = value === undefined ? removeValue(text, places, path) : writeValue(text, places, path, value)
  const others = without(plain(parseToml(text)), path)
  const expected = value === undefined ? others : overlay(others, nest(path, value))
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
function writeValue(text: string, places: readonly KeyPlace[], path: readonly string[], value: unknown): string {
  return replaceValue(text, places, path, value) ?? insertValue(text, places, path, value)
}
function removeValue(text: string, places: readonly KeyPlace[], path: readonly string[]): string {
  const place = placeAround(places, path)
  if (!place) return text
  if (place.path.length < path.length) return replaceValue(text, places, path, undefined) ?? text
  const start = text.lastIndexOf('\n', place.start) + 1
  const end = text.indexOf('\n', place.end)
  return text.slice(0, start) + (end < 0 ? '' : text.slice(end + 1))
}
/** The longest written key that is the wanted one or an inline table around it. */
function placeAround(places: readonly KeyPlace[], path: readonly string[]): KeyPlace | undefined {
  return places.findLast((one) => one.kind === 'value' && one.path.every((part, depth) => path[depth] === part))
}
function replaceValue(
  text: string,
  places: readonly KeyPlace[],
  path: readonly string[],
  value: unknown,
): string | undefined {
  const place = placeAround(places, path)
  if (!place) return undefined
  const inside = path.slice(place.path.length)
  const old = plain(parseToml(`x = ${text.slice(place.start, place.end)}`))['x']
  const others = without(isTree(old) ? old : {}, inside)
  const next = inside.length === 0 ? value : value === undefined ? others : overlay(others, nest(inside, value))
  return `${text.slice(0, place.start)}${valueText(next)}${text.slice(place.end)}`
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
  if (dotted) return insertLine(text, dotted.end, `${key(path.slice(dotted.table.length))} = ${valueText(value)}`)
  if (header || table.length === 0) {
    const last = places.findLast((place) => place.kind === 'value' && same(place.table, table))
    const line = `${key(path.slice(-1))} = ${valueText(value)}`
    if (last) return insertLine(text, last.end, line)
    if (header) return insertLine(text, header.start, line)
    const first = places.find((place) => place.kind === 'table')
    if (first) return insertBefore(text, first.line, `${line}\n\n`)
    return `${endLine(text)}${line}\n`
  }
  return `${endLine(text)}${text.trim() === '' ? '' : '\n'}[${key(table)}]\n${key(path.slice(-1))} = ${valueText(value)}\n`
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

/** A text of several lines stays one that people can read. */
function valueText(value: unknown): string {
  if (typeof value !== 'string' || !value.includes('\n')) return toToml(value)
  const lines = value.split('\n').map((line) => JSON.stringify(line).slice(1, -1).replaceAll('\u007f', '\\u007f'))
  // Of quotes only those that could end the text need their backslash.
  return `"""\n${lines.join('\n').replaceAll(/\\"(?!\\"|$)/g, '"')}"""`
}
