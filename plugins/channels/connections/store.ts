import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'

const Value = v.object({ value: v.string() })

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

  /** Takes or extends a lease. `false` while another holder has it. */
  async takeLease(channel: string, account: string, holder: string, now: number, expiresAt: number): Promise<boolean> {
    const { changes } = await this.#db.run`INSERT INTO channels_lease (channel, account_id, holder, expires_at)
      VALUES (${channel}, ${account}, ${holder}, ${expiresAt})
      ON CONFLICT (channel, account_id) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
      WHERE channels_lease.holder = ${holder} OR channels_lease.expires_at <= ${now}`
    return changes > 0
  }
  async releaseLease(channel: string, account: string, holder: string): Promise<void> {
    await this.#db.run`DELETE FROM channels_lease
      WHERE channel = ${channel} AND account_id = ${account} AND holder = ${holder}`
  }
}
