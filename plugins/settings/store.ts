import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'

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
  /** Of all that and the value, in base64url. A row without the right one is not adopted. */
  mac: v.nullable(v.string()),
})
export type ChangeRow = v.InferOutput<typeof ChangeRow>

/** Every statement on `settings_change`. */
export class ChangeStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof ChangeRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    const effect = 'is not adopted'
    this.#rows = new RowReader({ table: 'settings_change', key: ['key'], schema: ChangeRow, effect, log })
  }

  /** The last change of each key, in the order in which they were made. */
  async list(): Promise<readonly ChangeRow[]> {
    return this.#rows.all(await this.#db.all`SELECT * FROM settings_change ORDER BY number`)
  }
  async find(key: string): Promise<ChangeRow | undefined> {
    return (await this.list()).find((change) => change.key === key)
  }
  /** The number of the last change; 0 when there is none. */
  async last(): Promise<number> {
    const row = await this.#db.one<{
      readonly last: number
    }>`SELECT COALESCE(MAX(number), 0) AS last FROM settings_change`
    return row?.last ?? 0
  }
  /** Fails its batch when `last` is not the number of the last change any more. */
  put({ key, id, number, daemon, changed_by: by, changed_at: at, mac }: ChangeRow, last: number): readonly Statement[] {
    return [
      {
        ...this.#db.sql`SELECT svc_require(COALESCE(MAX(number), 0) = ${last}) FROM settings_change`,
        exclusive: 'settings_change',
      },
      this.#db.sql`INSERT INTO settings_change (key, id, number, daemon, changed_by, changed_at, mac)
        VALUES (${key}, ${id}, ${number}, ${daemon}, ${by}, ${at}, ${mac})
        ON CONFLICT (key) DO UPDATE SET id = excluded.id, number = excluded.number, daemon = excluded.daemon,
          changed_by = excluded.changed_by, changed_at = excluded.changed_at, mac = excluded.mac`,
    ]
  }
}
