import type { ConsolaInstance } from 'consola'
import type { Client } from 'pg'
import { messageOf } from '../errors/message.ts'
import type { Migration, PluginDatabase, Statement, Value } from './database.ts'
import { codeOf, isLost } from './failure.ts'
import { Migrations } from './migrate.ts'
import { CORE_MIGRATIONS, CORE_PLUGIN } from './open.ts'
import { FUNCTIONS, MIGRATION_LOCK, withPassword } from './open-postgres.ts'
import { listOwnTables } from './own-tables.ts'
import { connectPostgres } from './postgres-client.ts'
import { LOCK_SEED } from './postgres.ts'
import { PostgresTransaction } from './postgres-transaction.ts'
import type { ReadOnlyDatabase } from './read-only.ts'

/** The server ends no statement of a copy, however much data there is. */
const SETTINGS = { connections: 1, statementTimeoutMs: 0, idleTransactionMs: 0 }
/** Of one INSERT; the protocol allows 65,535 values. */
const MAX_VALUES = 30_000
const MAX_BYTES = 4_194_304
/** Texts that a message names. */
const MAX_NAMED = 10

export interface CopyRequest {
  /** Nobody writes to it meanwhile. */
  readonly source: ReadOnlyDatabase
  /** Of an empty database. */
  readonly url: string
  readonly password?: string | undefined
  /** Plugins that may have tables. */
  readonly plugins: readonly { readonly name: string; readonly migrations?: readonly Migration[] | undefined }[]
  /** Looks at the copy before it is committed; nothing is copied when it throws. */
  readonly check: (copy: PluginDatabase) => Promise<void>
  readonly log: ConsolaInstance
}
export interface Copied {
  /** Rows by table. */
  readonly tables: ReadonlyMap<string, number>
  /** Plugins that are not there any more: their tables are not copied. */
  readonly leftOut: readonly string[]
}

/** The copy cannot be made, and nothing was changed. The message says why. */
export class CopyRefused extends Error {
  override readonly name = 'CopyRefused'
}

/** The connection was lost before the server said that the copy is committed. */
export class CopyUnknown extends Error {
  override readonly name = 'CopyUnknown'
}

/**
 * Copies every row of a SQLite database into an empty PostgreSQL database, where the migrations make the tables, in one
 * transaction: there is all of it, or nothing. Throws `CopyRefused`, `CopyUnknown`, what `check` throws, or the error of
 * the server.
 */
export async function copyToPostgres(request: CopyRequest): Promise<Copied> {
  const { source, url, password, check } = request
  const { made, leftOut } = await knownPlugins(request)
  requireTexts(source, await tablesToCopy(source, leftOut))
  const client = await connectPostgres(withPassword(url, password), SETTINGS)
  try {
    await client.query('BEGIN')
    const target = new PostgresTransaction(client)
    // A daemon that starts on it meanwhile waits.
    await target.all`SELECT pg_advisory_xact_lock(hashtextextended(${MIGRATION_LOCK}, ${LOCK_SEED}))`
    await requireFit(target)
    await requireEmpty(target)
    await makeTables(target, made, request.log)
    const tables = await copyTables(source, target, leftOut)
    await check(target)
    await client.query('ANALYZE')
    await commit(client)
    return { tables, leftOut: leftOut.plugins }
  } finally {
    // Rolls back what is not committed.
    await client.end()
  }
}

async function commit(client: Client): Promise<void> {
  try {
    await client.query('COMMIT')
  } catch (error) {
    // A server that says something has not committed, unless it ends the connection.
    if (codeOf(error) !== '' && !isLost(codeOf(error))) throw error
    throw new CopyUnknown(
      `the connection to the server was lost while the copy was committed (${messageOf(error)}): whether it was made ` +
        'is not known',
      { cause: error },
    )
  }
}

interface LeftOut {
  readonly plugins: readonly string[]
  readonly tables: readonly string[]
}

/** Which plugins have tables, all at the version of this svc. */
async function knownPlugins({ source, plugins }: CopyRequest): Promise<{
  readonly made: readonly { readonly name: string; readonly migrations: readonly Migration[] }[]
  readonly leftOut: LeftOut
}> {
  const rows = await source.sql.all<{ plugin: string; id: string }>`SELECT plugin, id FROM core_migration`
  const applied = Map.groupBy(rows, ({ plugin }) => plugin)
  const known = [{ name: CORE_PLUGIN, migrations: CORE_MIGRATIONS }, ...plugins].filter(({ name }) => applied.has(name))
  const made = known.map(({ name, migrations = [] }) => {
    const done = new Set(applied.get(name)?.map(({ id }) => id))
    const isSame = migrations.length === done.size && migrations.every(({ id }) => done.has(id))
    if (!isSame)
      throw new CopyRefused(
        `the tables of "${name}" are those of another version: start svc once on this home, so that they are ` +
          'brought up to date, stop it, and copy then',
      )
    return { name, migrations }
  })
  const names = new Set(made.map(({ name }) => name))
  const gone = [...applied.keys()].filter((name) => !names.has(name))
  const found = await tablesOf(source.sql)
  return {
    made,
    leftOut: { plugins: gone, tables: gone.flatMap((name) => listOwnTables(name, found, [...applied.keys()])) },
  }
}

async function tablesOf(sql: PluginDatabase): Promise<readonly string[]> {
  // An index of words is made of virtual and shadow tables, and has nothing that its own table does not say.
  const rows = await sql.all<{ name: string }>`SELECT name FROM pragma_table_list
    WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name`
  return rows.map(({ name }) => name)
}

async function tablesToCopy(source: ReadOnlyDatabase, leftOut: LeftOut): Promise<readonly string[]> {
  return (await tablesOf(source.sql)).filter((table) => !leftOut.tables.includes(table))
}

/** PostgreSQL has no text with a NUL, and one that is not UTF-8 would arrive changed. */
function requireTexts(source: ReadOnlyDatabase, tables: readonly string[]): void {
  const found = tables.flatMap((table) =>
    [...source.unfitTexts(table)].map(({ column, row, problem }) => {
      const where = Object.entries(row).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
      return `"${column}" of "${table}" where ${where.join(', ')} ${problem}`
    }),
  )
  if (found.length === 0) return
  const shown = found.slice(0, MAX_NAMED).join('; ')
  throw new CopyRefused(
    `${found.length === 1 ? 'a text' : `${found.length} texts`} cannot be kept in PostgreSQL: ${shown}` +
      `${found.length > MAX_NAMED ? '; …' : ''}. To correct or delete what they belong to, start svc on this home, ` +
      'stop it, and copy then',
  )
}

/** What a start needs beyond the right to make tables, which making them tries. */
async function requireFit(target: PostgresTransaction): Promise<void> {
  const found = await target.one<{ user: string; database: string; encoding: string; may_create: boolean }>`SELECT
    current_user AS "user", current_database() AS database, current_setting('server_encoding') AS encoding,
    has_database_privilege(current_database(), 'CREATE') AS may_create`
  if (!found) return
  const { user, database, encoding, may_create: mayCreate } = found
  if (encoding !== 'UTF8')
    throw new CopyRefused(
      `the database "${database}" has the encoding ${encoding}: make one with \`createdb -E UTF8 -T template0\``,
    )
  if (!mayCreate)
    throw new CopyRefused(
      `the role "${user}" may not make schemas, which a start needs: as an owner of the database run ` +
        `GRANT CREATE ON DATABASE "${database}" TO "${user}"`,
    )
}

/** Of extensions there may be tables in a database that was just made. */
async function requireEmpty(target: PostgresTransaction): Promise<void> {
  const [first] = await target.all<{ name: string; schema: string }>`SELECT relname AS name, nspname AS schema
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'f') AND nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%'
      AND NOT EXISTS (SELECT 1 FROM pg_depend
        WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
    ORDER BY nspname, relname LIMIT 1`
  if (first)
    throw new CopyRefused(
      `the database is not empty: it has the table "${first.name}" in the schema "${first.schema}". ` +
        'Name one that was just made, with `createdb`',
    )
}

async function makeTables(
  target: PostgresTransaction,
  plugins: readonly { readonly name: string; readonly migrations: readonly Migration[] }[],
  log: ConsolaInstance,
): Promise<void> {
  const migrations = new Migrations(target, (statements) => target.batch(statements), log)
  await migrations.prepare(FUNCTIONS)
  for (const { name, migrations: list } of plugins) await migrations.apply(name, list, false)
}

async function copyTables(
  source: ReadOnlyDatabase,
  target: PostgresTransaction,
  leftOut: LeftOut,
): Promise<ReadonlyMap<string, number>> {
  const tables = await tablesToCopy(source, leftOut)
  // Migrations write rows too, which are in the source as they are now.
  await target.query({ sql: `TRUNCATE ${tables.map(quote).join(', ')}`, values: [] }).catch((error: unknown) => {
    throw new CopyRefused(`no plugin makes one of the tables of this home: ${messageOf(error)}`, { cause: error })
  })
  const copied = new Map<string, number>()
  for (const table of parentsFirst(source, tables)) copied.set(table, await copyTable(source, target, table, leftOut))
  return copied
}

async function copyTable(
  source: ReadOnlyDatabase,
  target: PostgresTransaction,
  table: string,
  leftOut: LeftOut,
): Promise<number> {
  let count = 0
  try {
    for (const insert of inserts(source, table, leftOut)) count += (await target.query(insert)).changes
    await continueNumbers(target, table)
  } catch (error) {
    throw new CopyRefused(`the table "${table}" cannot be copied: ${messageOf(error)}`, { cause: error })
  }
  const [there] = (await target.query({ sql: `SELECT count(*) AS count FROM ${quote(table)}`, values: [] })).rows as {
    count: number
  }[]
  if (there?.count !== count) throw new CopyRefused(`of ${count} rows of "${table}" ${there?.count} arrived`)
  return count
}

/** A row after the other, many in one statement. */
function* inserts(source: ReadOnlyDatabase, table: string, leftOut: LeftOut): Generator<Statement> {
  let sql = ''
  let width = 0
  let values: Value[] = []
  let bytes = 0
  const take = (): Statement => {
    const row = `(${Array(width).fill('?').join(', ')})`
    const statement = {
      sql:
        sql +
        Array(values.length / width)
          .fill(row)
          .join(', '),
      values,
    }
    values = []
    bytes = 0
    return statement
  }
  for (const row of source.rows(table)) {
    if (table === 'core_migration' && leftOut.plugins.includes(String(row['plugin']))) continue
    const columns = Object.keys(row)
    width = columns.length
    sql ||= `INSERT INTO ${quote(table)} (${columns.map(quote).join(', ')}) VALUES `
    for (const value of Object.values(row)) {
      values.push(value)
      bytes += typeof value === 'string' || value instanceof Uint8Array ? value.length : 8
    }
    if (bytes >= MAX_BYTES || values.length + width > MAX_VALUES) yield take()
  }
  if (values.length > 0) yield take()
}

/** Rows that are made later get numbers behind those that were copied. */
async function continueNumbers(target: PostgresTransaction, table: string): Promise<void> {
  const columns = await target.all<{ name: string }>`SELECT column_name AS name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = ${table} AND is_identity = 'YES'`
  for (const { name } of columns)
    await target.query({
      sql: `SELECT setval(pg_get_serial_sequence(?, ?), max(${quote(name)})) FROM ${quote(table)}
        HAVING max(${quote(name)}) > 0`,
      values: [quote(table), name],
    })
}

/** A row refers to one of another table that is there already. */
function parentsFirst(source: ReadOnlyDatabase, tables: readonly string[]): readonly string[] {
  const ordered = new Set<string>()
  const add = (table: string): void => {
    if (ordered.has(table)) return
    for (const parent of source.parents(table)) if (parent !== table) add(parent)
    ordered.add(table)
  }
  for (const table of tables) add(table)
  return [...ordered]
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
