import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'

const ChangeRow = v.object({
  key: v.string(),
  /** Of this change; never used again. */
  id: v.string(),
  number: v.number(),
  /** Name of the daemon that was told. */
  daemon: v.string(),
  changed_by: v.string(),
  /** ISO 8601 UTC. */
  changed_at: v.pipe(v.string(), v.isoTimestamp()),
})
export type ChangeRow = v.InferOutput<typeof ChangeRow>

/** Every statement on `settings_change`. */
export class ChangeStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** The last change of each key, in the order in which they were made. */
  async list(): Promise<readonly ChangeRow[]> {
    const rows = await this.#db.all`SELECT * FROM settings_change ORDER BY number`
    return rows.map((row) => v.parse(ChangeRow, row))
  }
  put({ key, id, daemon, changed_by: by, changed_at: at }: Omit<ChangeRow, 'number'>): Statement {
    return {
      ...this.#db.sql`INSERT INTO settings_change (key, id, number, daemon, changed_by, changed_at)
        SELECT ${key}, ${id}, COALESCE(MAX(number), 0) + 1, ${daemon}, ${by}, ${at} FROM settings_change WHERE 1 = 1
        ON CONFLICT (key) DO UPDATE SET id = excluded.id, number = excluded.number, daemon = excluded.daemon,
          changed_by = excluded.changed_by, changed_at = excluded.changed_at`,
      exclusive: 'settings_change',
    }
  }
}
