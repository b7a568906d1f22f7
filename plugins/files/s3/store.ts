import type { PluginDatabase } from 'svc/sdk'

/** Every object that may be in the bucket: statements on `files_object`, but for those that name one in a file. */
export class ObjectStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** Before it is sent. */
  async announce(key: string, sizeBytes: number, at: string): Promise<void> {
    await this.#db
      .run`INSERT INTO files_object (object_key, size_bytes, written_at) VALUES (${key}, ${sizeBytes}, ${at})`
  }
  /** Whether a file may still name it. */
  async isUsable(key: string): Promise<boolean> {
    const found = await this.#db
      .one`SELECT 1 AS usable FROM files_object WHERE object_key = ${key} AND unused_at IS NULL`
    return found !== undefined
  }
  /** From now on no file can name those that were written before a time and that none names. */
  async markUnused(writtenBefore: string, at: string): Promise<void> {
    await this.#db
      .run`UPDATE files_object SET unused_at = ${at} WHERE unused_at IS NULL AND written_at < ${writtenBefore}
      AND NOT EXISTS (SELECT 1 FROM files_stored WHERE files_stored.object_key = files_object.object_key)`
  }
  async unusedSince(before: string, limit: number): Promise<readonly string[]> {
    const rows = await this.#db.all<{ readonly object_key: string }>`SELECT object_key FROM files_object
      WHERE unused_at < ${before} ORDER BY unused_at, object_key LIMIT ${limit}`
    return rows.map(({ object_key: key }) => key)
  }
  /** Once it is gone. */
  async forget(key: string): Promise<void> {
    await this.#db.run`DELETE FROM files_object WHERE object_key = ${key} AND unused_at IS NOT NULL`
  }
}
