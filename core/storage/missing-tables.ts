import type { Database, Migration } from './database.ts'
import { splitStatements } from './dialect.ts'

/** The records of migrations name tables that are not there: a dump that was restored in part. */
export class DatabaseIncomplete extends Error {
  override readonly name = 'DatabaseIncomplete'
}

/** Throws `DatabaseIncomplete` when a table is not there that a migration made, by its record. For PostgreSQL. */
export async function refuseMissingTables(
  { sql }: Pick<Database, 'sql'>,
  plugins: readonly { readonly name: string; readonly migrations: readonly Migration[] }[],
): Promise<void> {
  // In this order: another daemon may be making tables, each with its record.
  const records = await sql.all<{ plugin: string; id: string }>`SELECT plugin, id FROM core_migration`
  const tables = await sql.all<{
    name: string
  }>`SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`
  const done = new Set(records.map(({ plugin, id }) => `${plugin} ${id}`))
  const there = new Set(tables.map(({ name }) => name))
  const missing = plugins.flatMap(({ name, migrations }) =>
    [...tablesOf(migrations.filter(({ id }) => done.has(`${name} ${id}`)))].filter((table) => !there.has(table)),
  )
  if (missing.length === 0) return
  throw new DatabaseIncomplete(
    `the database lacks tables that its records say were made: ${missing.toSorted().join(', ')}. ` +
      'Restore it whole, into an empty database, or name an empty one',
  )
}

/** The tables there are after these migrations. */
function tablesOf(migrations: readonly Migration[]): ReadonlySet<string> {
  const tables = new Set<string>()
  for (const statement of migrations.flatMap(({ sql, postgresql = sql }) => splitStatements(postgresql))) {
    const bare = statement.replaceAll(/--[^\n]*/g, '').trim()
    const [, made] = /^CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)/i.exec(bare) ?? []
    const [, dropped] = /^DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(\w+)/i.exec(bare) ?? []
    const [, from, to] = /^ALTER\s+TABLE\s+(\w+)\s+RENAME\s+TO\s+(\w+)/i.exec(bare) ?? []
    for (const gone of [dropped, from]) if (gone !== undefined) tables.delete(gone.toLowerCase())
    for (const added of [made, to]) if (added !== undefined) tables.add(added.toLowerCase())
  }
  return tables
}
