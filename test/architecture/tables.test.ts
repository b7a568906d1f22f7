import { describe, expect, it } from 'vitest'
import { code, resolveImport, sources } from './sources.ts'
import type { Source } from './sources.ts'

const plugins = sources('plugins')
const statement =
  /\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|SELECT\s[\s\S]*?\sFROM|JOIN|CREATE\s+TABLE(?:\s+IF\s+NOT\s+EXISTS)?|CREATE\s+(?:UNIQUE\s+)?INDEX(?:\s+IF\s+NOT\s+EXISTS)?\s+\w+\s+ON|ALTER\s+TABLE)\s+([a-z_][a-z0-9_]*)/g

/** What is wrong in their rows has to be noticed. */
const MAY_THROW = ['plugins/audit/']
/** Schemas of what a RowReader has read, and of what a statement computes. */
const READ_ALREADY = new Set([
  'plugins/agents/store.ts: UnknownAgentRow',
  'plugins/mcp/servers/store.ts: Spec',
  'plugins/queue/pg-boss/store.ts: LaneCount',
])
const MORE =
  /readOwnJson|JSON\.parse|v\.(?!object|string|number|bigint|boolean|nullable|optional|unknown|union|pipe|transform)\w+\(/
/** The text of a constant of a file, or of one that it imports, and where that is. */
function definitionOf(file: Source, name: string): { readonly file: Source; readonly text: string } | undefined {
  const text = new RegExp(`(?:^|\\n)(?:export )?const ${name} = ([\\s\\S]*?)(?:\\n(?=[^\\s)}\\]])|$)`).exec(
    code(file.text),
  )?.[1]
  if (text !== undefined) return { file, text }
  const from = new RegExp(`import \\{[^}]*\\b${name}\\b[^}]*\\} from '(\\.[^']+)'`).exec(file.text)?.[1]
  const other = from && plugins.find(({ path }) => path === resolveImport(file.path, from))
  return other ? definitionOf(other, name) : undefined
}
/** Whether a row may fail a schema although its columns have their types, which strict tables and PostgreSQL hold. */
function saysMore(file: Source, schema: string, seen: readonly string[] = []): boolean {
  const text = schema.replaceAll(/v\.fallback\(v\.picklist\([^)]*\), '\w+'\)/g, '')
  if (MORE.test(text)) return true
  return [...text.matchAll(/\b[A-Za-z]\w*\b/g)].some(([word]) => {
    const found = seen.includes(word) ? undefined : definitionOf(file, word)
    return found !== undefined && saysMore(found.file, found.text, [...seen, word])
  })
}

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

  it('rows are read with RowReader, unless their schema says only which types the columns have', () => {
    const wrong = plugins
      .filter(({ path }) => path.endsWith('/store.ts') && !MAY_THROW.some((known) => path.startsWith(known)))
      .flatMap((file) =>
        [...code(file.text).matchAll(/v\.(?:safeP|p)arse\(\s*(?:v\.(?:array|optional)\(\s*)*(v\.\w+\([^)]*\)|\w+)/g)]
          .map((match) => match[1] ?? '')
          .filter((schema) => !READ_ALREADY.has(`${file.path}: ${schema}`))
          .filter((schema) => saysMore(file, schema) || (/^\w+$/.test(schema) && !definitionOf(file, schema)))
          .map((schema) => `${file.path}: ${schema}`),
      )
    expect(wrong).toEqual([])
  })
})
