import type { ConsolaInstance } from 'consola'
import type { AnyPlugin } from '../host/define.ts'
import { PluginProblem } from '../host/definition.ts'
import type { Members } from '../host/instance.ts'
import { restrictedMembers } from '../host/permission-guard.ts'
import type { Migration, PluginDatabase } from '../storage/database.ts'
import { TableCatalog } from '../storage/own-tables.ts'

/** What holds for plugins that are restricted to what they declare. */
export class Restrictions {
  readonly #log: ConsolaInstance
  readonly #tables: TableCatalog
  readonly #names: () => readonly string[]

  /** `names`: of all plugins whose code was read. */
  constructor(log: ConsolaInstance, database: PluginDatabase, names: () => readonly string[]) {
    this.#log = log
    this.#tables = new TableCatalog(database)
    this.#names = names
  }

  restrict(members: Members, definition: AnyPlugin): Members {
    return restrictedMembers(members, definition, {
      log: this.#log,
      ownTables: () => this.#tables.ownTables(definition.name, this.#names()),
    })
  }

  /** Throws `PluginProblem` if one touches tables of others. */
  async checkMigrations(plugin: string, migrations: readonly Migration[]): Promise<void> {
    const own = await this.#tables.ownTables(plugin, this.#names())
    for (const { id, sql, postgresql = '' } of migrations) {
      const problem = own.migrationProblem(sql) ?? own.migrationProblem(postgresql)
      if (problem !== undefined)
        throw new PluginProblem(`migration "${id}" of plugin "${plugin}" uses its own tables only: ${problem}`)
    }
  }

  /** Some migration ran. */
  renewTables(): void {
    this.#tables.renew()
  }
}
