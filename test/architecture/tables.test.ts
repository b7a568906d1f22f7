import { describe, expect, it } from 'vitest'
import { code, sources } from './sources.ts'

const plugins = sources('plugins')
const statement =
  /\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|SELECT\s[\s\S]*?\sFROM|JOIN|CREATE\s+TABLE(?:\s+IF\s+NOT\s+EXISTS)?|CREATE\s+(?:UNIQUE\s+)?INDEX(?:\s+IF\s+NOT\s+EXISTS)?\s+\w+\s+ON|ALTER\s+TABLE)\s+([a-z_][a-z0-9_]*)/g

describe('tables', () => {
  it('SQL lives in store.ts and migrations.ts', () => {
    const wrong = plugins
      .filter((file) => !/\/(store|migrations)\.ts$/.test(file.path) && !file.path.includes('/page/'))
      .filter((file) =>
        /\b(?:INSERT INTO|DELETE FROM|CREATE TABLE|SELECT\s+[\w*(,. )]+\s+FROM|UPDATE\s+\w+\s+SET)\b/.test(
          code(file.text),
        ),
      )
      .map((file) => file.path)
    expect(wrong).toEqual([])
  })

  it('a plugin names only its own tables', () => {
    const wrong = plugins
      .filter((file) => /\/(store|migrations)\.ts$/.test(file.path))
      .flatMap((file) => {
        const prefix = `${(file.path.split('/')[1] ?? '').replaceAll('-', '_')}_`
        const local = new Set(
          [...code(file.text).matchAll(/\b([a-z_]+)(?:\([a-z_, ]*\))?\s+AS\s*(?:MATERIALIZED\s*)?\(/g)].map(
            (match) => match[1],
          ),
        )
        return [...code(file.text).matchAll(statement)]
          .map((match) => match[1] ?? '')
          .filter((table) => !table.startsWith(prefix) && !local.has(table) && table !== 'json_each')
          .map((table) => [file.path, table])
      })
    expect(wrong).toEqual([])
  })

  it('values are bound, never spliced into SQL', () => {
    const wrong = plugins
      .filter((file) => /\b(?:db|database|connection|instance)\??\.(?:exec|prepare|unsafe)\(/.test(code(file.text)))
      .map((file) => file.path)
    expect(wrong).toEqual([])
  })
})
