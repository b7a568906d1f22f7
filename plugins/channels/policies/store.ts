import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { roles } from './roles.ts'

const Code = v.object({
  digest: v.string(),
  channel: v.string(),
  account: v.string(),
  role: v.picklist(roles),
  expires_at: v.string(),
})
export type Code = v.InferOutput<typeof Code>
export const Paired = v.object({
  id: v.string(),
  channel: v.string(),
  account: v.string(),
  sender_id: v.string(),
  name: v.string(),
  role: v.picklist(roles),
  paired_at: v.string(),
})
/** A person who was admitted by a code. */
export type Paired = v.InferOutput<typeof Paired>

export class PairingStore {
  readonly #db: PluginDatabase
  readonly #codes: RowReader<typeof Code>
  readonly #people: RowReader<typeof Paired>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#codes = new RowReader({ table: 'channels_pairing_code', key: ['id'], schema: Code, log })
    this.#people = new RowReader({ table: 'channels_paired', key: ['id'], schema: Paired, log })
  }

  insertCode({ digest, channel, account, role, expires_at }: Code): Statement {
    return this.#db.sql`INSERT INTO channels_pairing_code (digest, channel, account, role, expires_at)
      VALUES (${digest}, ${channel}, ${account}, ${role}, ${expires_at})`
  }
  async findCode(digest: string, channel: string, account: string, now: string): Promise<Code | undefined> {
    const row = await this.#db.one`SELECT * FROM channels_pairing_code
      WHERE digest = ${digest} AND channel = ${channel} AND account = ${account} AND expires_at > ${now}`
    return this.#codes.oneOrThrow(row)
  }
  /** Codes that can be used, the last to expire first. */
  async codes(channel: string, now: string): Promise<readonly Code[]> {
    const rows = await this.#db.all`SELECT * FROM channels_pairing_code
      WHERE channel = ${channel} AND expires_at > ${now} ORDER BY expires_at DESC`
    return this.#codes.all(rows)
  }
  removeCode(digest: string): Statement {
    return this.#db.sql`DELETE FROM channels_pairing_code WHERE digest = ${digest}`
  }
  removeExpired(now: string): Statement {
    return this.#db.sql`DELETE FROM channels_pairing_code WHERE expires_at <= ${now}`
  }
  /** Replaces an earlier pairing of the same person. */
  insert({ id, channel, account, sender_id, name, role, paired_at }: Paired): Statement {
    return this.#db.sql`INSERT INTO channels_paired (id, channel, account, sender_id, name, role, paired_at)
      VALUES (${id}, ${channel}, ${account}, ${sender_id}, ${name}, ${role}, ${paired_at})
      ON CONFLICT (channel, account, sender_id) DO UPDATE SET id = excluded.id, name = excluded.name,
        role = excluded.role, paired_at = excluded.paired_at`
  }
  remove(id: string): Statement {
    return this.#db.sql`DELETE FROM channels_paired WHERE id = ${id}`
  }
  /** Oldest first. */
  async all(): Promise<readonly Paired[]> {
    return this.#people.all(await this.#db.all`SELECT * FROM channels_paired ORDER BY paired_at, id`)
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
