import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import type { PluginDatabase, Statement } from 'svc/sdk'

const FileRow = v.object({ path: v.string(), size_bytes: v.number(), modified_at: v.string() })
export type FileRow = v.InferOutput<typeof FileRow>

export interface NewFile {
  readonly path: string
  readonly content: Uint8Array
  /** Of the object in the bucket that has the content; `content` is empty then. */
  readonly objectKey?: string
}
export interface FoundFile {
  readonly size_bytes: number
  /** `null` when it has more than `maxBytes`. */
  readonly content: Uint8Array | null
}

/** Files of workspaces that are no folders. */
export interface FileStore {
  isMade(agentId: string): Promise<boolean>
  /** With its first files. Whoever is first makes it. */
  make(agentId: string, files: readonly NewFile[], at: string): Promise<void>
  read(agentId: string, path: string, maxBytes: number): Promise<FoundFile | undefined>
  /** Of the whole workspace, without the contents. */
  list(agentId: string): Promise<readonly FileRow[]>
  put(agentId: string, file: NewFile, at: string): Promise<void>
  remove(agentId: string, path: string): Promise<boolean>
  removeAll(agentId: string): Promise<void>
}

/** Every statement on the files that lie in the database. */
export class StoredFiles implements FileStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async isMade(agentId: string): Promise<boolean> {
    return (await this.#db.one`SELECT 1 AS made FROM files_workspace WHERE agent_id = ${agentId}`) !== undefined
  }
  async make(agentId: string, files: readonly NewFile[], at: string): Promise<void> {
    await this.#db.batch([
      ...this.#hold(files, at),
      this.#db.sql`INSERT INTO files_workspace (agent_id) VALUES (${agentId}) ON CONFLICT (agent_id) DO NOTHING`,
      ...files.map(
        ({ path, content, objectKey = null }) => this.#db.sql`INSERT INTO files_stored
          (agent_id, path, size_bytes, modified_at, content, object_key) VALUES (${agentId}, ${path},
          CASE WHEN CAST(${objectKey} AS TEXT) IS NULL THEN CAST(${content.byteLength} AS INTEGER) ELSE
            (SELECT size_bytes FROM files_object WHERE object_key = ${objectKey} AND unused_at IS NULL) END,
          ${at}, ${content}, ${objectKey}) ON CONFLICT (agent_id, path) DO NOTHING`,
      ),
    ])
  }

  async read(agentId: string, path: string, maxBytes: number): Promise<FoundFile | undefined> {
    const found = await this.find(agentId, path, maxBytes)
    if (found && found.object_key !== null)
      throw new Refusal(
        'conflict',
        `The content of "${path}" lies in a bucket: set [plugins.files.s3] as it was when the file was written`,
      )
    return found
  }
  async find(agentId: string, path: string, maxBytes: number) {
    return await this.#db.one<FoundFile & { readonly object_key: string | null }>`
      SELECT size_bytes, CASE WHEN size_bytes <= ${maxBytes} THEN content END AS content, object_key FROM files_stored
      WHERE agent_id = ${agentId} AND path = ${path}`
  }
  async list(agentId: string): Promise<readonly FileRow[]> {
    const rows = await this.#db.all`SELECT path, size_bytes, modified_at FROM files_stored WHERE agent_id = ${agentId}`
    return rows.map((row) => v.parse(FileRow, row))
  }
  async put(agentId: string, file: NewFile, at: string): Promise<void> {
    const { path, content, objectKey = null } = file
    await this.#db.batch([
      ...this.#hold([file], at),
      this.#db.sql`INSERT INTO files_stored (agent_id, path, size_bytes, modified_at, content, object_key)
        VALUES (${agentId}, ${path},
        CASE WHEN CAST(${objectKey} AS TEXT) IS NULL THEN CAST(${content.byteLength} AS INTEGER) ELSE
          (SELECT size_bytes FROM files_object WHERE object_key = ${objectKey} AND unused_at IS NULL) END,
        ${at}, ${content}, ${objectKey})
        ON CONFLICT (agent_id, path) DO UPDATE SET size_bytes = excluded.size_bytes,
        modified_at = excluded.modified_at, content = excluded.content, object_key = excluded.object_key`,
    ])
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

  /**
   * Keeps objects from being taken for unused as long as the batch runs. One that was before has no size any more,
   * which fails the batch: its writer was held up for a day.
   */
  #hold(files: readonly NewFile[], at: string): readonly Statement[] {
    return files.flatMap(({ objectKey }) =>
      objectKey === undefined
        ? []
        : [
            this.#db.sql`UPDATE files_object SET written_at = ${at}
              WHERE object_key = ${objectKey} AND unused_at IS NULL`,
          ],
    )
  }
}
