import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { OwnedCount } from '../../cluster/contract.ts'

const Value = v.object({ value: v.string() })
const Count = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number))
const HolderCount = v.object({ owner: v.string(), count: Count })
/** Who polls an account, and how often it has counted. */
const Holder = v.object({
  id: v.string(),
  beats: Count,
})
export type Holder = v.InferOutput<typeof Holder>

/** Positions of feeds, and who polls an account. */
export class ConnectionStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async readState(channel: string, account: string, name: string): Promise<string | undefined> {
    const row = await this.#db.one`SELECT value FROM channels_state
      WHERE channel = ${channel} AND account_id = ${account} AND name = ${name}`
    return v.parse(v.optional(Value), row)?.value
  }
  async writeState(channel: string, account: string, name: string, value: string): Promise<void> {
    await this.#db.run`INSERT INTO channels_state (channel, account_id, name, value)
      VALUES (${channel}, ${account}, ${name}, ${value})
      ON CONFLICT (channel, account_id, name) DO UPDATE SET value = excluded.value`
  }
  /** Whether nobody wrote it before. */
  async claimState(channel: string, account: string, name: string, value: string): Promise<boolean> {
    const { changes } = await this.#db.run`INSERT INTO channels_state (channel, account_id, name, value)
      VALUES (${channel}, ${account}, ${name}, ${value}) ON CONFLICT (channel, account_id, name) DO NOTHING`
    return changes > 0
  }
  removeStates(channel: string, account: string): Statement {
    return this.#db.sql`DELETE FROM channels_state WHERE channel = ${channel} AND account_id = ${account}`
  }

  /** Counts up the lease of this holder. `false` when it does not have it. */
  async renewLease(channel: string, account: string, holder: string): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE channels_lease SET beats = beats + 1
      WHERE channel = ${channel} AND account_id = ${account} AND holder = ${holder}`
    return changes > 0
  }
  async holderOf(channel: string, account: string): Promise<Holder | undefined> {
    const row = await this.#db.one`SELECT holder AS id, beats FROM channels_lease
      WHERE channel = ${channel} AND account_id = ${account}`
    return v.parse(v.optional(Holder), row)
  }
  /** Takes a lease that nobody else has, or that of a dead holder unless it has beaten since. Whether it could. */
  async takeLease(channel: string, account: string, holder: string, dead?: Holder): Promise<boolean> {
    const { changes } = dead
      ? await this.#db.run`UPDATE channels_lease SET holder = ${holder}, beats = beats + 1
          WHERE channel = ${channel} AND account_id = ${account} AND holder = ${dead.id} AND beats = ${dead.beats}`
      : await this.#db.run`INSERT INTO channels_lease (channel, account_id, holder, beats)
          VALUES (${channel}, ${account}, ${holder}, 0)
          ON CONFLICT (channel, account_id) DO UPDATE SET beats = channels_lease.beats + 1
          WHERE channels_lease.holder = ${holder}`
    return changes > 0
  }
  /** How many accounts each home has. */
  async countLeases(): Promise<readonly OwnedCount[]> {
    const rows = await this.#db.all`SELECT holder AS owner, count(*) AS count FROM channels_lease GROUP BY holder`
    return v.parse(v.array(HolderCount), rows).map((row) => ({ ...row, what: 'accounts' }))
  }
  async releaseLease(channel: string, account: string, holder: string): Promise<void> {
    await this.#db.run`DELETE FROM channels_lease
      WHERE channel = ${channel} AND account_id = ${account} AND holder = ${holder}`
  }
}
