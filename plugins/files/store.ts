import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import { UploadRow } from './schema.ts'

export class UploadStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async find(id: string): Promise<UploadRow | undefined> {
    return v.parse(v.optional(UploadRow), await this.#db.one`SELECT * FROM files_upload WHERE id = ${id}`)
  }
  insert(row: UploadRow): Statement {
    return this.#db.sql`INSERT INTO files_upload (id, agent_id, filename, path, content_type, size_bytes, created_at)
      VALUES (${row.id}, ${row.agent_id}, ${row.filename}, ${row.path}, ${row.content_type}, ${row.size_bytes},
      ${row.created_at})`
  }
  async commit(...statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }

  async clear(agentId: string): Promise<void> {
    await this.#db.run`DELETE FROM files_upload WHERE agent_id = ${agentId}`
  }
  async agents(): Promise<string[]> {
    const rows = await this.#db.all<{ agent_id: string }>`SELECT DISTINCT agent_id FROM files_upload`
    return rows.map((row) => row.agent_id)
  }
}
