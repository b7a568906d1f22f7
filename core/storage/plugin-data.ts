import type { Database, PluginDatabase, Statement } from './database.ts'
import { listOwnTables } from './own-tables.ts'

/** What a plugin has stored. */
export interface PluginData {
  readonly tables: readonly { readonly name: string; readonly rows: number }[]
  /** How many values of `ctx.storage`. */
  readonly values: number
  /** Names of secrets in the vault. */
  readonly secrets: readonly string[]
}

/** What the daemon itself stores is under this name. */
const DAEMON = 'core'

/** `plugins`: the names of all plugins there are. Tables that fit another one's name better are not listed. */
export async function describeData(
  db: PluginDatabase,
  plugin: string,
  plugins: readonly string[],
): Promise<PluginData> {
  if (plugin === DAEMON) return { tables: [], values: 0, secrets: [] }
  const [names, values, secrets] = await Promise.all([
    ownTables(db, plugin, plugins),
    db.one<{ count: number }>`SELECT count(*) AS count FROM core_storage WHERE plugin = ${plugin}`,
    db.all<{ name: string }>`SELECT name FROM core_vault WHERE plugin = ${plugin} ORDER BY name`,
  ])
  const tables: { name: string; rows: number }[] = []
  for (const name of names) tables.push({ name, rows: await countRows(db, name) })
  return { tables, values: Number(values?.count ?? 0), secrets: secrets.map((secret) => secret.name) }
}

/** All of it goes in one batch with `entries`. The plugin must not be loaded. */
export async function deleteData(
  database: Pick<Database, 'sql' | 'scrub'>,
  plugin: string,
  plugins: readonly string[],
  entries: readonly Statement[],
): Promise<void> {
  if (plugin === DAEMON) throw new Error('what the daemon itself stores cannot be deleted')
  const db = database.sql
  const tables = await ownTables(db, plugin, plugins)
  await db.batch([
    ...(await dropStatements(db, tables)),
    db.sql`DELETE FROM core_migration WHERE plugin = ${plugin}`,
    db.sql`DELETE FROM core_storage WHERE plugin = ${plugin}`,
    db.sql`DELETE FROM core_vault WHERE plugin = ${plugin}`,
    ...entries,
  ])
  await database.scrub()
}

async function ownTables(db: PluginDatabase, plugin: string, plugins: readonly string[]): Promise<readonly string[]> {
  const [tables, made] = await Promise.all([
    db.dialect === 'sqlite'
      ? // The tables that a virtual one consists of go with it.
        db.all<{ name: string }>`SELECT name FROM pragma_table_list
          WHERE schema = 'main' AND type IN ('table', 'virtual') ORDER BY name`
      : db.all<{ name: string }>`SELECT table_name AS name FROM information_schema.tables
          WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name`,
    db.all<{ plugin: string }>`SELECT DISTINCT plugin FROM core_migration`,
  ])
  return listOwnTables(
    plugin,
    tables.map(({ name }) => name),
    [...plugins, ...made.map((row) => row.plugin)],
  )
}

async function countRows(db: PluginDatabase, table: string): Promise<number> {
  const sql = Object.assign([`SELECT count(*) AS count FROM ${quote(table)}`], { raw: [] })
  return Number((await db.one<{ count: number }>(sql))?.count ?? 0)
}

async function dropStatements(db: PluginDatabase, tables: readonly string[]): Promise<readonly Statement[]> {
  if (tables.length === 0) return []
  if (db.dialect === 'postgresql') return [{ sql: `DROP TABLE ${tables.map(quote).join(', ')} CASCADE`, values: [] }]
  const references = new Map<string, ReadonlySet<string>>()
  for (const table of tables) {
    const found = await db.all<{ name: string }>`SELECT "table" AS name FROM pragma_foreign_key_list(${table})`
    references.set(table, new Set(found.map(({ name }) => name).filter((name) => name !== table)))
  }
  return dropOrder(tables, references).map((name) => ({ sql: `DROP TABLE ${quote(name)}`, values: [] }))
}

/** A table goes before those it refers to; SQLite refuses it otherwise. */
function dropOrder(tables: readonly string[], references: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
  const order: string[] = []
  let left = [...tables]
  while (left.length > 0) {
    const isReferred = (table: string): boolean => left.some((other) => references.get(other)?.has(table) === true)
    const free = left.filter((table) => !isReferred(table))
    // Of tables that refer to each other, any goes first.
    const next = free.length > 0 ? free : left.slice(0, 1)
    order.push(...next)
    left = left.filter((table) => !next.includes(table))
  }
  return order
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
