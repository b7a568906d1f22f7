import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import { digestOf, ORIGIN, TAG, writerPrefix } from '../chain.ts'
import type { Fields } from '../chain.ts'

/** Entries that get their numbers in one transaction. What one costs grows with it, as each is found among all. */
export const NUMBERED_AT_ONCE = 200

const whole = v.pipe(v.union([v.number(), v.string()]), v.transform(Number))
const ChainRow = v.pipe(
  v.object({ home: v.string(), number: whole, seq: whole, hash: v.string() }),
  v.transform(({ home, number, seq, hash }) => ({ writer: `${home}-${number}`, seq, hash })),
)
/** The newest entry of a chain. */
export type ChainTip = v.InferOutput<typeof ChainRow>

/** What the daemons on one database write: PostgreSQL only. */
export class WriterStore {
  readonly #db: PluginDatabase
  readonly #home: string
  constructor(db: PluginDatabase, home: string) {
    this.#db = db
    this.#home = home
  }

  /**
   * Takes a chain of this daemon that no other batch holds, or begins one, and adds to it. The chain is held until the
   * batch is committed, so its entries are on disk in the order of their numbers. A batch never waits for another here:
   * a daemon has as many chains as it had batches open at a time. A ticket is a number that no other chain has.
   */
  append(fields: Fields): Statement {
    const home = this.#home
    const prefix = writerPrefix(`${home}-`)
    const digest = digestOf(fields)
    return this.#db.sql`WITH free AS MATERIALIZED (
        SELECT number FROM audit_chain WHERE home = ${home} ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED
      ), chosen AS (
        SELECT COALESCE(
          (SELECT number FROM free),
          (SELECT nextval(pg_get_serial_sequence('audit_staged', 'ticket')))
        ) AS number
      ), link AS (
        INSERT INTO audit_chain AS chain (home, number, seq, hash)
        SELECT CAST(${home} AS TEXT), number, 1,
          svc_sha256(CAST(${prefix} AS TEXT) || number || CAST(${`:1:${ORIGIN}:${digest}`} AS TEXT))
        FROM chosen
        ON CONFLICT (home, number) DO UPDATE SET
          seq = chain.seq + 1,
          hash = svc_sha256(CAST(${prefix} AS TEXT) || chain.number || ':' || (chain.seq + 1) || ':' || chain.hash
            || CAST(${`:${digest}`} AS TEXT))
        RETURNING home || '-' || number AS writer, seq, hash
      )
      INSERT INTO audit_staged (writer, seq, timestamp, event_type, agent_id, details, actor, hash)
      SELECT writer, seq, ${fields.timestamp}, ${fields.event_type}, ${fields.agent_id}, ${fields.details},
        ${fields.actor ?? ''}, hash
      FROM link`
  }

  async tips(): Promise<readonly ChainTip[]> {
    return v.parse(
      v.array(ChainRow),
      await this.#db.all`SELECT home, number, seq, hash FROM audit_chain ORDER BY home, number`,
    )
  }
  /** For the batch that drops the newest entry of a chain: without it, the chain begins anew. */
  forget(writer: string, seq: number): Statement {
    return this.#db.sql`DELETE FROM audit_chain WHERE home || '-' || number = ${writer} AND seq = ${seq}`
  }

  async hasStaged(): Promise<boolean> {
    return (await this.#db.one`SELECT ticket FROM audit_staged ORDER BY ticket LIMIT 1`) !== undefined
  }
  /**
   * Moves staged entries to the end of the common chain. Says how many. What gets a number is committed, and one
   * transaction at a time gives them: whoever reads on from a number never misses a smaller one. Tickets only keep the
   * order of each chain and, roughly, that of time.
   */
  async number(): Promise<number> {
    const [, numbered] = await this.#db.batch([
      this.#db.sql`SELECT name FROM audit_lock WHERE name = 'numbers' FOR UPDATE`,
      this.#db.sql`WITH RECURSIVE taken AS (
          DELETE FROM audit_staged
          WHERE ticket IN (SELECT ticket FROM audit_staged ORDER BY ticket LIMIT ${NUMBERED_AT_ONCE})
          RETURNING *
        ), placed AS MATERIALIZED (
          SELECT row_number() OVER (ORDER BY ticket) AS place, taken.*,
            octet_length(timestamp) || ':' || timestamp || octet_length(event_type) || ':' || event_type
            || octet_length(agent_id) || ':' || agent_id || octet_length(details) || ':' || details
            || octet_length(actor) || ':' || actor || octet_length(writer) || ':' || writer
            || octet_length(CAST(seq AS TEXT)) || ':' || seq || octet_length(hash) || ':' || hash AS body
          FROM taken
        ), link (place, id, prev_hash, hash) AS (
          SELECT CAST(0 AS BIGINT),
            COALESCE((SELECT max(id) FROM audit_entry), (SELECT entry_id FROM audit_origin WHERE id = 1), 0), '',
            COALESCE((SELECT hash FROM audit_entry ORDER BY id DESC LIMIT 1),
              (SELECT hash FROM audit_origin WHERE id = 1), CAST(${ORIGIN} AS TEXT))
          UNION ALL
          SELECT placed.place, link.id + 1, link.hash,
            svc_sha256(CAST(${`${TAG}:`} AS TEXT) || (link.id + 1) || ':' || link.hash || ':' || placed.body)
          FROM link JOIN placed ON placed.place = link.place + 1
        )
        INSERT INTO audit_entry
          (id, timestamp, event_type, agent_id, details, actor, prev_hash, hash, writer, seq, writer_hash)
        SELECT link.id, timestamp, event_type, agent_id, details, actor, link.prev_hash, link.hash, writer, seq,
          placed.hash
        FROM link JOIN placed ON placed.place = link.place`,
    ])
    return numbered?.changes ?? 0
  }

  /** Who made a key of the vault, of all daemons; empty before the first. */
  async keyClaim(name: string): Promise<string> {
    const row = await this.#db.one<{ claim: string }>`SELECT claim FROM audit_lock WHERE name = ${name}`
    return row?.claim ?? ''
  }
  /** Makes its batch fail when another daemon made the key since the claim was read. */
  claimKey(name: string, known: string, claim: string): Statement {
    return this.#db.sql`UPDATE audit_lock SET claim = CASE WHEN claim = ${known} THEN CAST(${claim} AS TEXT) END
      WHERE name = ${name}`
  }
  /** Whether this home has a chain. */
  async hasWritten(): Promise<boolean> {
    return (await this.#db.one`SELECT number FROM audit_chain WHERE home = ${this.#home} LIMIT 1`) !== undefined
  }
}
