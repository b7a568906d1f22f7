import { splitStatements } from './dialect.ts'
import type { PluginDatabase } from './database.ts'

/** Refuses SQL on tables of others. A table belongs to the plugin with the longest prefix that fits its name. */
export class OwnTables {
  readonly #prefix: string
  readonly #foreign: ReadonlySet<string>

  /** `tables`: every table there is. `plugins`: the names of all plugins that have or had tables. */
  constructor(plugin: string, tables: readonly string[], plugins: readonly string[]) {
    this.#prefix = prefixOf(plugin)
    const own = new Set(listOwnTables(plugin, tables, plugins))
    this.#foreign = new Set(tables.filter((table) => !own.has(table)).map((table) => table.toLowerCase()))
  }

  /** What is wrong with a statement at run time; `undefined` if nothing is. */
  problem(sql: string): string | undefined {
    const words = wordsOf(sql)
    if (!/^(select|insert|update|delete|replace|with|values)$/.test(words[0] ?? ''))
      return `"${words[0] ?? sql}" is no statement on rows: tables are made by migrations`
    return this.#foreignName(sql, words)
  }

  /** What is wrong with the SQL of a migration. */
  migrationProblem(sql: string): string | undefined {
    for (const statement of splitStatements(sql)) {
      const words = wordsOf(statement)
      const problem = this.#definitionProblem(statement, words) ?? this.#foreignName(statement, words)
      if (problem !== undefined) return problem
    }
    return undefined
  }

  #definitionProblem(statement: string, words: readonly string[]): string | undefined {
    const [first = ''] = words
    if (/^(insert|update|delete|replace|with|select)$/.test(first)) return undefined
    if (!/^(create|alter|drop)$/.test(first)) return `"${first}" is no statement of a migration`
    const kind = words.slice(1).find((word) => !/^(unique|temp|temporary|virtual)$/.test(word)) ?? ''
    if (!/^(table|index)$/.test(kind)) return `it may ${first} tables and indexes, and no ${kind}`
    if (words.includes('virtual') && (!/\busing\s+fts5\s*\(/i.test(statement) || /\bcontent\s*=/i.test(statement)))
      return 'a virtual table must use fts5 with content of its own'
    const named = words.slice(words.indexOf(kind) + 1).find((word) => !/^(if|not|exists)$/.test(word))
    const renamed = words.indexOf('rename')
    const names = [named, ...(renamed !== -1 && words[renamed + 1] === 'to' ? [words[renamed + 2]] : [])]
    const wrong = names.find((name) => name?.startsWith(this.#prefix) !== true)
    return names.every((name) => name?.startsWith(this.#prefix) === true)
      ? undefined
      : `"${wrong ?? ''}" must begin with "${this.#prefix}"`
  }

  #foreignName(sql: string, words: readonly string[]): string | undefined {
    if (/\bu&["']/i.test(sql)) return 'escaped names cannot be checked'
    const found = words.find((word) => this.#foreign.has(word) || RESERVED.test(word))
    return found === undefined ? undefined : `"${found}" does not belong to it`
  }
}

/** The tables of one plugin, of all there are. */
export function listOwnTables(
  plugin: string,
  tables: readonly string[],
  plugins: readonly string[],
): readonly string[] {
  const prefix = prefixOf(plugin)
  const longer = plugins.map(prefixOf).filter((other) => other !== prefix && other.startsWith(prefix))
  const isOwn = (table: string): boolean =>
    table.startsWith(prefix) && !longer.some((other) => table.startsWith(other)) && !RESERVED.test(table)
  return tables.filter((table) => isOwn(table.toLowerCase()))
}

/** Tables and functions of the engines that lead to everything. */
const RESERVED = new RegExp(
  [
    '^(core_|sqlite_|pragma_|pg_|dblink|lo_)',
    '^(information_schema|dbstat|bytecode|tables_used|load_extension|set_config|current_setting)$',
    '_to_xml',
  ].join('|'),
)
const COMMENTS = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g
/** Names, quoted or not. A text counts as well: SQLite takes one for the name of a table. */
const WORDS = /"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|\[([^\]]*)\]|'((?:[^']|'')*)'|[\p{L}_][\p{L}\p{N}_$]*/gu

/** The words of a statement in lower case. */
function wordsOf(sql: string): readonly string[] {
  return [...withoutComments(sql).matchAll(WORDS)].map((match) => {
    const quoted = match.slice(1).find((part) => part !== undefined)
    return (quoted ?? match[0]).trim().toLowerCase()
  })
}
/** A text or name that looks like a comment stays. */
function withoutComments(sql: string): string {
  const parts = new RegExp(`("(?:[^"]|"")*"|'(?:[^']|'')*'|\`[^\`]*\`|\\[[^\\]]*\\])|${COMMENTS.source}`, 'g')
  return sql.replaceAll(parts, (_, kept: string | undefined) => kept ?? ' ')
}
function prefixOf(plugin: string): string {
  return `${plugin.replaceAll('-', '_')}_`
}

/** The tables there are and the plugins that made them, read again after `renew`. */
export class TableCatalog {
  readonly #db: PluginDatabase
  #found: Promise<{ readonly tables: readonly string[]; readonly plugins: readonly string[] }> | undefined

  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** Some migration ran. */
  renew(): void {
    this.#found = undefined
  }

  async ownTables(plugin: string, known: readonly string[]): Promise<OwnTables> {
    const { tables, plugins } = await (this.#found ??= this.#read())
    return new OwnTables(plugin, tables, [...plugins, ...known])
  }

  async #read() {
    const db = this.#db
    const [tables, plugins] = await Promise.all([
      db.dialect === 'sqlite'
        ? db.all<{ name: string }>`SELECT name FROM sqlite_master WHERE type IN ('table', 'view')`
        : db.all<{ name: string }>`SELECT table_name AS name FROM information_schema.tables
            WHERE table_schema = current_schema()`,
      db.all<{ plugin: string }>`SELECT DISTINCT plugin FROM core_migration`,
    ])
    return { tables: tables.map(({ name }) => name), plugins: plugins.map(({ plugin }) => plugin) }
  }
}
