import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import { DeviceStore } from './paired/store.ts'
import { CodeRow } from './schema.ts'
import type { DeviceRow } from './schema.ts'

/** Over a limit, or for a missing code, the id becomes NULL, which the column refuses: the batch fails as a whole. */
export class PairingStore extends DeviceStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    super(db)
    this.#db = db
  }

  /** Codes that can be used no more. */
  sweep(now: string, maxAttempts: number): Statement {
    return this.#db.sql`DELETE FROM pairing_code WHERE expires_at <= ${now} OR attempts >= ${maxAttempts}`
  }
  insertCode({ id, digest, expires_at: expiresAt }: CodeRow, max: number): Statement {
    return {
      ...this.#db.sql`INSERT INTO pairing_code (id, digest, expires_at, attempts)
      VALUES (CASE WHEN (SELECT COUNT(*) FROM pairing_code) < ${max} THEN ${id} END, ${digest}, ${expiresAt}, 0)`,
      exclusive: 'pairing_code',
    }
  }
  /** A wrong code counts against every pending code: which one was meant is unknown. */
  countAttempt(now: string): Statement {
    return this.#db.sql`UPDATE pairing_code SET attempts = attempts + 1 WHERE expires_at > ${now}`
  }
  async findCode(digest: string, now: string, maxAttempts: number): Promise<CodeRow | undefined> {
    return v.parse(
      v.optional(CodeRow),
      await this.#db.one`SELECT id, digest, expires_at FROM pairing_code
      WHERE digest = ${digest} AND expires_at > ${now} AND attempts < ${maxAttempts}`,
    )
  }
  async pending(now: string, maxAttempts: number): Promise<number> {
    const row = await this.#db.one<{
      waiting: number | string
    }>`SELECT COUNT(*) AS waiting FROM pairing_code WHERE expires_at > ${now} AND attempts < ${maxAttempts}`
    return Number(row?.waiting ?? 0)
  }
  removeCode(id: string): Statement {
    return this.#db.sql`DELETE FROM pairing_code WHERE id = ${id}`
  }

  insertDevice(device: DeviceRow, code: { readonly id: string; readonly maxAttempts: number }, max: number): Statement {
    return {
      ...this.#db
        .sql`INSERT INTO pairing_device (id, code_id, digest, proof, display_name, platform, paired_at, last_seen)
      VALUES (CASE WHEN (SELECT COUNT(*) FROM pairing_device) < ${max}
          AND EXISTS (
            SELECT 1 FROM pairing_code
            WHERE id = ${code.id} AND expires_at > ${device.paired_at} AND attempts < ${code.maxAttempts}
          ) THEN ${device.id} END,
        ${code.id}, ${device.digest}, ${device.proof}, ${device.display_name}, ${device.platform},
        ${device.paired_at}, ${device.last_seen})`,
      exclusive: 'pairing_device',
    }
  }
}
