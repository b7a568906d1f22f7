import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import { DeviceRow } from '../schema.ts'

/** The statements on paired devices that a daemon needs without pairing one. */
export class DeviceStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async devices(): Promise<DeviceRow[]> {
    return v.parse(
      v.array(DeviceRow),
      await this.#db.all`SELECT id, digest, proof, display_name, platform, paired_at, last_seen
          FROM pairing_device ORDER BY paired_at, id`,
    )
  }
  prove(id: string, proof: string): Statement {
    return this.#db.sql`UPDATE pairing_device SET proof = ${proof} WHERE id = ${id} AND proof IS NULL`
  }
  removeDevice(id: string): Statement {
    return this.#db.sql`DELETE FROM pairing_device WHERE id = ${id}`
  }
  seen(id: string, at: string): Statement {
    return this.#db.sql`UPDATE pairing_device SET last_seen = ${at} WHERE id = ${id} AND last_seen < ${at}`
  }
  async commit(...statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
