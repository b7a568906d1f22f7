import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import type { PluginDatabase, Statement } from 'svc/sdk'

const FileRow = v.object({ path: v.string(), size_bytes: v.number(), modified_at: v.string() })
const PlacedRow = v.object({ ...FileRow.entries, object_key: v.nullable(v.string()) })
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
  /** Of the object in the bucket that has the content. */
  readonly object_key: string | null
}
/** A file that is replaced, made (no `before`) or removed (no `after`) if it still is what it was. */
export interface StoredChange {
  readonly path: string
  readonly before: { readonly objectKey: string } | { readonly content: Uint8Array } | undefined
  readonly after: NewFile | undefined
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
  /** All of them in one batch, which fails when one of the files is not what it was. */
  change(agentId: string, changes: readonly StoredChange[], at: string): Promise<void>
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
    return await this.#db.one<FoundFile>`
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
  async change(agentId: string, changes: readonly StoredChange[], at: string): Promise<void> {
    const added = changes.flatMap(({ after }) => (after ? [after] : []))
    await this.#db.batch([
      ...this.#hold(added, at),
      ...changes.flatMap(({ path, before }) => (before ? this.#takeAway(agentId, path, before, at) : [])),
      // Fails for a file that somebody else has made.
      ...added.map(
        ({ path, content, objectKey = null }) => this.#db.sql`INSERT INTO files_stored
          (agent_id, path, size_bytes, modified_at, content, object_key) VALUES (${agentId}, ${path},
          CASE WHEN CAST(${objectKey} AS TEXT) IS NULL THEN CAST(${content.byteLength} AS INTEGER) ELSE
            (SELECT size_bytes FROM files_object WHERE object_key = ${objectKey} AND unused_at IS NULL) END,
          ${at}, ${content}, ${objectKey})`,
      ),
    ])
  }
  /** Of a workspace, with where the contents lie. */
  async placed(agentId: string): Promise<readonly (FileRow & { readonly object_key: string | null })[]> {
    const rows = await this.#db.all`SELECT path, size_bytes, modified_at, object_key FROM files_stored
      WHERE agent_id = ${agentId} ORDER BY path`
    return rows.map((row) => v.parse(PlacedRow, row))
  }
  /** Of all workspaces. */
  async agents(): Promise<readonly string[]> {
    const rows = await this.#db.all<{ readonly agent_id: string }>`SELECT agent_id FROM files_workspace
      UNION SELECT agent_id FROM files_stored`
    return rows.map(({ agent_id: id }) => id)
  }
  /** In one batch with the statements. */
  async removeAll(agentId: string, entries: readonly Statement[] = []): Promise<void> {
    await this.#db.batch([
      ...entries,
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

  /** Deletes a row. Fails the batch, by a size that is none, unless the row still has what it had. */
  #takeAway(
    agentId: string,
    path: string,
    before: NonNullable<StoredChange['before']>,
    at: string,
  ): readonly Statement[] {
    const { sql } = this.#db
    const key = 'objectKey' in before ? before.objectKey : null
    const content = 'content' in before ? before.content : new Uint8Array()
    return [
      // Nobody else changes the row until the batch ends.
      sql`UPDATE files_stored SET modified_at = modified_at WHERE agent_id = ${agentId} AND path = ${path}`,
      sql`INSERT INTO files_stored (agent_id, path, size_bytes, modified_at, content)
        SELECT ${agentId}, ${path}, CAST(NULL AS INTEGER), ${at}, ${new Uint8Array()}
        WHERE NOT EXISTS (SELECT 1 FROM files_stored WHERE agent_id = ${agentId} AND path = ${path}
          AND coalesce(object_key, '') = coalesce(CAST(${key} AS TEXT), '')
          AND (object_key IS NOT NULL OR content = ${content}))`,
      sql`DELETE FROM files_stored WHERE agent_id = ${agentId} AND path = ${path}`,
    ]
  }
}
