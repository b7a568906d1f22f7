import * as v from 'valibot'
import type { PluginDatabase } from 'svc/sdk'

const FileRow = v.object({ path: v.string(), size_bytes: v.number(), modified_at: v.string() })
export type FileRow = v.InferOutput<typeof FileRow>

/** Every statement on the files that lie in the database. */
export class StoredFiles {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async isMade(agentId: string): Promise<boolean> {
    return (await this.#db.one`SELECT 1 AS made FROM files_workspace WHERE agent_id = ${agentId}`) !== undefined
  }
  /** With its first files. Whoever is first makes it. */
  async make(agentId: string, files: readonly (readonly [path: string, content: Uint8Array])[], at: string) {
    await this.#db.batch([
      this.#db.sql`INSERT INTO files_workspace (agent_id) VALUES (${agentId}) ON CONFLICT (agent_id) DO NOTHING`,
      ...files.map(
        ([path, content]) => this.#db.sql`INSERT INTO files_stored (agent_id, path, size_bytes, modified_at, content)
          VALUES (${agentId}, ${path}, ${content.byteLength}, ${at}, ${content}) ON CONFLICT (agent_id, path) DO NOTHING`,
      ),
    ])
  }

  /** `content` is missing for a file of more than `maxBytes`. */
  async read(agentId: string, path: string, maxBytes: number) {
    return await this.#db.one<{ readonly size_bytes: number; readonly content: Uint8Array | null }>`
      SELECT size_bytes, CASE WHEN size_bytes <= ${maxBytes} THEN content END AS content FROM files_stored
      WHERE agent_id = ${agentId} AND path = ${path}`
  }
  /** Of the whole workspace, without the contents. */
  async list(agentId: string): Promise<readonly FileRow[]> {
    const rows = await this.#db.all`SELECT path, size_bytes, modified_at FROM files_stored WHERE agent_id = ${agentId}`
    return rows.map((row) => v.parse(FileRow, row))
  }
  async put(agentId: string, path: string, content: Uint8Array, at: string): Promise<void> {
    await this.#db.run`INSERT INTO files_stored (agent_id, path, size_bytes, modified_at, content)
      VALUES (${agentId}, ${path}, ${content.byteLength}, ${at}, ${content})
      ON CONFLICT (agent_id, path) DO UPDATE SET size_bytes = excluded.size_bytes, modified_at = excluded.modified_at,
        content = excluded.content`
  }
  async remove(agentId: string, path: string): Promise<boolean> {
    const { changes } = await this.#db.run`DELETE FROM files_stored WHERE agent_id = ${agentId} AND path = ${path}`
    return changes > 0
  }
  async removeAll(agentId: string): Promise<void> {
    await this.#db.batch([
      this.#db.sql`DELETE FROM files_stored WHERE agent_id = ${agentId}`,
      this.#db.sql`DELETE FROM files_workspace WHERE agent_id = ${agentId}`,
    ])
  }
}
