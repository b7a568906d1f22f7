import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { ArchivedFile, SharedFolder, SharedFolderStore } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'

const Row = v.object({
  name: v.string(),
  revision: v.string(),
  state: v.picklist(['installed', 'removed']),
  source: v.string(),
  files_sha256: v.string(),
  mac: v.string(),
  updated_at: v.string(),
})
/** A hand that was installed, or removed since. */
export type InstalledHand = v.InferOutput<typeof Row>
export type HandColumns = Omit<InstalledHand, keyof SharedFolder>

/** The statements on installed hands. */
export class InstalledStore implements SharedFolderStore<HandColumns> {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof Row>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'hands_installed', key: ['name'], schema: Row, log })
  }

  async all(): Promise<readonly InstalledHand[]> {
    return this.#rows.all(await this.#db.all`SELECT * FROM hands_installed ORDER BY name`)
  }
  async find(name: string): Promise<InstalledHand | undefined> {
    const row = await this.#db.one`SELECT * FROM hands_installed WHERE name = ${name}`
    return row === undefined ? undefined : this.#rows.one(row)
  }
  async files(name: string): Promise<readonly ArchivedFile[]> {
    const rows = await this.#db.all<{ readonly path: string; readonly bytes: Uint8Array }>`
      SELECT path, bytes FROM hands_file WHERE hand = ${name} ORDER BY path`
    return rows.map(({ path, bytes }) => ({ name: path, bytes: Buffer.from(bytes) }))
  }

  /** `files` take the place of those before. */
  put(hand: InstalledHand, files: readonly ArchivedFile[]): readonly Statement[] {
    const { name, revision, state, source, files_sha256: hash, mac, updated_at: updatedAt } = hand
    return [
      this.#db.sql`INSERT INTO hands_installed (name, revision, state, source, files_sha256, mac, updated_at)
        VALUES (${name}, ${revision}, ${state}, ${source}, ${hash}, ${mac}, ${updatedAt})
        ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, state = excluded.state,
          source = excluded.source, files_sha256 = excluded.files_sha256, mac = excluded.mac,
          updated_at = excluded.updated_at`,
      this.#db.sql`DELETE FROM hands_file WHERE hand = ${name}`,
      ...files.map(
        ({ name: path, bytes }) =>
          this.#db.sql`INSERT INTO hands_file (hand, path, bytes) VALUES (${name}, ${path}, ${bytes})`,
      ),
    ]
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
