import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'

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
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** Oldest first, those that are being added or removed included. */
  async all(): Promise<readonly Installed[]> {
    return v.parse(v.array(Row), await this.#db.all`SELECT * FROM integrations_installed ORDER BY installed_at, id`)
  }
  async list(): Promise<readonly Installed[]> {
    return (await this.all()).filter(({ state }) => state === 'installed')
  }
  async find(id: string): Promise<Installed | undefined> {
    return v.parse(v.optional(Row), await this.#db.one`SELECT * FROM integrations_installed WHERE id = ${id}`)
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
