import { closeSync, openSync, readSync, renameSync } from 'node:fs'
import { json } from 'node:stream/consumers'

// It warns that it is new, among the errors that the model reads.
process.removeAllListeners('warning')
const { DatabaseSync } = process.getBuiltinModule('node:sqlite')

const MAX_TEXT = 500
/** Characters of the rows of an answer. */
const MAX_ANSWER = 60_000
const MAX_TABLES = 100
const MAX_PROBLEMS = 50

const quote = (name) => `"${name.replaceAll('"', '""')}"`

/** What the first 100 bytes say. Throws for a file that is none of SQLite. */
function readHeader(path) {
  const bytes = Buffer.alloc(100)
  const file = openSync(path, 'r')
  const length = readSync(file, bytes)
  closeSync(file)
  if (length === 0) throw new Error('the file is empty: a program that opened a wrong name leaves such a file')
  if (length < 100 || bytes.toString('latin1', 0, 16) !== 'SQLite format 3\0')
    throw new Error('the file is no SQLite database, or an encrypted one')
  return { isWal: bytes[18] === 2 }
}

/** Opens the copy, which nobody else has: what is in `wal` is read too. */
function open({ path, wal }) {
  const { isWal } = readHeader(path)
  if (wal !== undefined) renameSync(wal, `${path}-wal`)
  const db = new DatabaseSync(path, { readOnly: true, allowExtension: false })
  const notes =
    isWal && wal === undefined
      ? [
          'the database keeps a write-ahead log: what is only in the file that ends with -wal is not seen. Give it as wal',
        ]
      : []
  return { db, notes }
}

/** A number where JavaScript is exact, else digits; bytes by their count. */
function toCell(value) {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  if (value instanceof Uint8Array) return `<${value.length} bytes>`
  if (typeof value === 'string' && value.length > MAX_TEXT)
    return `${value.slice(0, MAX_TEXT)}… (${value.length} characters)`
  return value
}

function prepare(db, sql) {
  const statement = db.prepare(sql)
  const rest = sql.slice(sql.indexOf(statement.sourceSQL) + statement.sourceSQL.length)
  if (/[^\s;]/.test(rest.replace(/--[^\n]*|\/\*[^]*?\*\//g, '')))
    throw new Error('there is more than one statement: run one at a time')
  statement.setReadBigInts(true)
  return statement
}
const all = (db, sql, ...params) =>
  prepare(db, sql)
    .all(...params)
    .map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toCell(value)])))

/** What a step of a plan means for the time that the query takes. */
const steps = [
  [/COVERING INDEX/, 'the index has all that is needed'],
  [/^SEARCH/, 'only the columns in brackets narrow'],
  [/^SCAN/, 'reads all rows: an index is missing, or a term is wrapped in a function'],
  [/USE TEMP B-TREE/, 'sorts by hand: let an index end with that column'],
  [/CORRELATED/, 'runs once for each row: a join may be faster'],
]

function query({ path, wal, sql, params = [], limit = 50, explain = false }) {
  const { db, notes } = open({ path, wal })
  if (explain) {
    const plan = all(db, `EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => ({
      step: detail,
      means:
        (detail.includes('AUTOMATIC') ? 'builds an index for this query alone: make it' : undefined) ??
        steps.find(([pattern]) => pattern.test(detail))?.[1] ??
        '',
    }))
    return { plan, notes }
  }
  const statement = prepare(db, sql)
  const columns = statement.columns().map(({ name }) => name)
  if (columns.length === 0) throw new Error('this statement gives no rows: only reading is done here')
  statement.setReturnArrays(true)
  const rows = []
  let chars = 0
  let more = false
  for (const row of statement.iterate(...params.map((value) => (typeof value === 'boolean' ? Number(value) : value)))) {
    const cells = row.map(toCell)
    chars += JSON.stringify(cells).length
    if (rows.length === limit || chars > MAX_ANSWER) {
      more = true
      break
    }
    rows.push(cells)
  }
  return { columns, rows, shown: rows.length, ...(more && { more: true }), notes }
}

const objects = `SELECT type, name, tbl_name AS of_table, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name`

function describeTable(db, name) {
  const columns = all(db, `SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)`, name)
  const foreign = all(db, `SELECT "from", "table", "to", on_delete FROM pragma_foreign_key_list(?)`, name)
  return {
    columns: columns.map((column) =>
      [
        column.name,
        column.type,
        column.pk > 0 && 'PRIMARY KEY',
        column.notnull === 1 && 'NOT NULL',
        column.dflt_value !== null && `DEFAULT ${column.dflt_value}`,
        column.hidden > 1 && 'GENERATED',
      ]
        .filter((part) => part)
        .join(' '),
    ),
    ...(foreign.length > 0 && {
      foreign_keys: foreign.map(
        (key) => `${key.from} to ${key.table}(${key.to ?? 'its primary key'}), on delete ${key.on_delete}`,
      ),
    }),
  }
}

function schema({ path, wal, table }) {
  const { db, notes } = open({ path, wal })
  const found = all(db, objects)
  const tables = found.filter(({ type, name }) => type === 'table' && (table === undefined || name === table))
  const views = found.filter(({ type, name }) => type === 'view' && (table === undefined || name === table))
  if (table !== undefined && tables.length + views.length === 0)
    throw new Error(
      `there is no table "${table}"; there are ${
        found
          .filter(({ type }) => type === 'table' || type === 'view')
          .map(({ name }) => name)
          .slice(0, 50)
          .join(', ') || 'none'
      }`,
    )
  const belongs = (type, name) => found.filter((each) => each.type === type && each.of_table === name)
  const describe = ({ name, sql }) => ({
    name,
    rows: countOf(db, name),
    ...describeTable(db, name),
    indexes: belongs('index', name).map((index) => (table === undefined ? index.name : index.sql)),
    triggers: belongs('trigger', name).map((trigger) => (table === undefined ? trigger.name : trigger.sql)),
    ...(table !== undefined && { sql }),
  })
  return {
    tables: tables.slice(0, MAX_TABLES).map(describe),
    views: views.map(({ name, sql }) => (table === undefined ? name : { name, sql })),
    ...(tables.length > MAX_TABLES && { more: tables.length - MAX_TABLES }),
    notes,
  }
}
/** `null` for a table of an extension that is not here. */
function countOf(db, name) {
  try {
    return all(db, `SELECT count(*) AS count FROM ${quote(name)}`)[0].count
  } catch {
    return null
  }
}

function check({ path, wal }) {
  const { db, notes } = open({ path, wal })
  const pragma = (name) => Object.values(all(db, `PRAGMA ${name}`)[0] ?? {})[0]
  const integrity = all(db, `PRAGMA integrity_check(${MAX_PROBLEMS})`).map(({ integrity_check: text }) => text)
  const foreign = all(db, `SELECT "table", rowid AS row, parent FROM pragma_foreign_key_check LIMIT ${MAX_PROBLEMS}`)
  return {
    ok: integrity[0] === 'ok' && foreign.length === 0,
    integrity,
    foreign_keys: foreign.map(({ table, row, parent }) => `row ${row} of ${table} has no ${parent}`),
    journal_mode: pragma('journal_mode'),
    page_size: pragma('page_size'),
    pages: pragma('page_count'),
    free_pages: pragma('freelist_count'),
    user_version: pragma('user_version'),
    encoding: pragma('encoding'),
    largest: largest(db),
    notes,
  }
}
/** Empty where this build of SQLite cannot count pages. */
function largest(db) {
  try {
    return all(db, 'SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY 1 ORDER BY 2 DESC LIMIT 10')
  } catch {
    return []
  }
}

try {
  const { tool, input } = await json(process.stdin)
  console.log(JSON.stringify({ query, schema, check }[tool](input)))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
