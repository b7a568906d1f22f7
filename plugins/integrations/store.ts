import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'

const Row = v.object({
  id: v.string(),
  template: v.string(),
  name: v.string(),
  state: v.picklist(['adding', 'installed', 'removing']),
  installed_at: v.string(),
  /** The id of the daemon that adds or removes it, or did; `null` when a version before wrote the row. */
  owner: v.nullable(v.string()),
})
export type Installed = v.InferOutput<typeof Row>

export class InstalledStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof Row>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'integrations_installed', key: ['id'], schema: Row, log })
  }

  /** Oldest first, those that are being added or removed included. */
  async all(): Promise<readonly Installed[]> {
    return this.#rows.all(await this.#db.all`SELECT * FROM integrations_installed ORDER BY installed_at, id`)
  }
  async list(): Promise<readonly Installed[]> {
    return (await this.all()).filter(({ state }) => state === 'installed')
  }
  async find(id: string): Promise<Installed | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM integrations_installed WHERE id = ${id}`)
  }
  insert({ id, template, name, state, installed_at: at, owner }: Installed): Statement {
    return this.#db.sql`INSERT INTO integrations_installed (id, template, name, state, installed_at, owner)
      VALUES (${id}, ${template}, ${name}, ${state}, ${at}, ${owner})`
  }
  setState(id: string, state: Installed['state'], owner: string): Statement {
    return this.#db.sql`UPDATE integrations_installed SET state = ${state}, owner = ${owner} WHERE id = ${id}`
  }
  remove(id: string): Statement {
    return this.#db.sql`DELETE FROM integrations_installed WHERE id = ${id}`
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}

/** Whether anything was ever added: without it nothing of this plugin has to be loaded. */
export async function hasInstalled(db: PluginDatabase): Promise<boolean> {
  return (await db.one`SELECT id FROM integrations_installed LIMIT 1`) !== undefined
}
