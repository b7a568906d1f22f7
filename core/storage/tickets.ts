import type { PluginDatabase } from './database.ts'

/** A ticket as the daemons on one database share it. */
export interface StoredTicket {
  /** JSON: whose it is. */
  readonly holder: string
  /** Of the API key that was in force. */
  readonly keyMark: string
}

/** Tickets of WebSockets on PostgreSQL, by the digest of what their holder presents. Time is the server's. */
export class TicketStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** `false` when there are `max` already. */
  async insert(digest: string, { holder, keyMark }: StoredTicket, ttlSecs: number, max: number): Promise<boolean> {
    const outcomes = await this.#db.batch([
      this.#db.sql`DELETE FROM core_ticket WHERE expires_at <= CAST(extract(epoch FROM now()) AS BIGINT)`,
      {
        ...this.#db.sql`INSERT INTO core_ticket (digest, holder, key_mark, expires_at)
          SELECT CAST(${digest} AS TEXT), CAST(${holder} AS TEXT), CAST(${keyMark} AS TEXT),
            CAST(extract(epoch FROM now()) AS BIGINT) + ${ttlSecs}
          WHERE (SELECT count(*) FROM core_ticket) < ${max}`,
        exclusive: 'core_ticket',
      },
    ])
    return outcomes.at(-1)?.changes === 1
  }
  /** Uses it up. `undefined` when there is none, or none any more. */
  take(digest: string): Promise<StoredTicket | undefined> {
    return this.#db.one<StoredTicket>`WITH taken AS (DELETE FROM core_ticket WHERE digest = ${digest} RETURNING *)
      SELECT holder, key_mark AS "keyMark" FROM taken
      WHERE expires_at > CAST(extract(epoch FROM now()) AS BIGINT)`
  }
}
