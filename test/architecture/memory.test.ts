import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { memoryPlaces } from '../support/memory-places.ts'
import { memoryTable } from './memory-table.ts'
import { code, root, sources } from './sources.ts'

/** Commands, pages and the build run in other processes; what tests run in is no part of a daemon. */
const ELSEWHERE = /\/cli\/|\/cli\.ts$|\/pages?\/|^core\/(?:build|testing)\/|^core\/testing\.ts$|\.d\.ts$/
/** Words of code that reads rows itself. */
const ROWS = /\b(?:(?:Plugin)?Database|[A-Z]\w*Store|KeyValueStorage|Vault)\b|\bdb\b/

const files = sources('core', 'plugins', 'adapters')
  .filter(({ path }) => !ELSEWHERE.test(path))
  .map(({ path, text }) => ({
    path,
    readsRows: ROWS.test(code(text)),
    names: [...new Set(memoryPlaces(path, text).map(({ name }) => name))],
  }))
  .filter(({ names }) => names.length > 0)

/** A line of the table: a folder, a file, or names in a file. */
interface Line {
  readonly text: string
  readonly path: string
  readonly names: readonly string[] | undefined
  readonly found: Set<string>
}
const lines = memoryTable.flatMap(({ of }) =>
  of
    .split('\n')
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map((text): Line => {
      const [path = '', names] = text.split(': ')
      return { text, path, names: names?.split(' '), found: new Set() }
    }),
)
/** The line that says most of a place: one with its name, then one with its file, then the longest folder. */
function lineOf({ path, readsRows }: (typeof files)[number], name: string): Line | undefined {
  const named = lines.find((line) => line.path === path && line.names?.includes(name))
  if (named || readsRows) return named
  return (
    lines.find((line) => line.path === path && !line.names) ??
    lines.filter((line) => line.path.endsWith('/') && path.startsWith(line.path)).toSorted(byLength)[0]
  )
}
const byLength = (one: Line, other: Line): number => other.path.length - one.path.length

describe('what a daemon keeps in memory', () => {
  const missing = files.flatMap((file) =>
    file.names.flatMap((name) => {
      const line = lineOf(file, name)
      line?.found.add(name)
      return line ? [] : [`${file.path}: ${name}`]
    }),
  )

  it('is in the table, which says why another daemon cannot make it wrong', () => {
    expect(missing, 'add it to test/architecture/memory-table.ts').toEqual([])
  })

  it('is all that the table names', () => {
    expect(lines.filter(({ found }) => found.size === 0).map(({ text }) => text)).toEqual([])
    const gone = lines.flatMap(({ path, names = [], found }) =>
      names.filter((name) => !found.has(name)).map((name) => `${path}: ${name}`),
    )
    expect(gone).toEqual([])
    expect(new Set(lines.map(({ text }) => text)).size).toBe(lines.length)
  })

  it('stands in docs/scale.md where each daemon has its own', () => {
    const page = readFileSync(join(root, 'docs/scale.md'), 'utf8')
    const cells = memoryTable.flatMap((row) => ('alone' in row ? [row.alone] : []))
    expect(cells.filter((cell) => !page.includes(`\n| ${cell} |`))).toEqual([])
  })

  it.each(memoryTable.flatMap((row) => ('told' in row ? [row] : [])))(
    'is told of changes under $told, as $test shows',
    ({ told, test }) => {
      expect(existsSync(join(root, test)) && readFileSync(join(root, test), 'utf8').includes(told)).toBe(true)
      // A topic is `<plugin>.<subject>`.
      const plugin = `plugins/${told.split('.', 1)[0]}`
      expect(sources(plugin).some(({ text }) => text.includes(`'${told}'`))).toBe(true)
    },
  )
})
