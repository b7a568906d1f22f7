import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { OwnedCount } from '../../cluster/contract.ts'

const Count = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number))
const CountRow = v.object({ owner: v.string(), count: Count })
const OwnerRow = v.object({ session_id: v.string(), owner: v.string(), fence: Count, relayed: Count })
/**
 * Who works on the turns of a session. A session without a row has no open turn. `owner` is empty where one handed it
 * over with open turns. `fence` differs whenever a daemon took it. `relayed` counts the turns that other daemons
 * accepted for the owner.
 */
export type OwnerRow = v.InferOutput<typeof OwnerRow>
const RelayedRow = v.object({
  number: Count,
  turn_id: v.string(),
  accepted_by: v.string(),
  sender: v.nullable(v.string()),
})
/** A turn that another daemon accepted for the owner of its session. */
export type RelayedRow = v.InferOutput<typeof RelayedRow>

/** Every statement on the owners of sessions, for PostgreSQL. One that does not hold fails its batch as taken over. */
export class OwnerStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async find(sessionId: string): Promise<OwnerRow | undefined> {
    return v.parse(
      v.optional(OwnerRow),
      await this.#db.one`SELECT session_id, owner, fence, relayed FROM chat_session_owner
        WHERE session_id = ${sessionId}`,
    )
  }
  /** How many sessions each daemon has. */
  async counts(): Promise<readonly OwnedCount[]> {
    const rows = v.parse(
      v.array(CountRow),
      await this.#db.all`SELECT owner, count(*) AS count FROM chat_session_owner WHERE owner <> '' GROUP BY owner`,
    )
    return rows.map((row) => ({ ...row, what: 'sessions' }))
  }
  /** Of every daemon but those. */
  async notOf(owners: readonly string[]): Promise<readonly OwnerRow[]> {
    return v.parse(
      v.array(OwnerRow),
      await this.#db.all`SELECT session_id, owner, fence, relayed FROM chat_session_owner
        WHERE NOT ${JSON.stringify(owners)}::jsonb @> to_jsonb(owner)`,
    )
  }

  /** Takes a session that nobody has. */
  make({ session_id: id, owner, fence }: Omit<OwnerRow, 'relayed'>): Statement {
    return this.#db.sql`WITH made AS (INSERT INTO chat_session_owner (session_id, owner, fence, relayed)
      VALUES (${id}, ${owner}, ${fence}, 0) ON CONFLICT (session_id) DO NOTHING RETURNING 1)
      SELECT svc_require(count(*) = 1) FROM made`
  }
  /** Takes a session from the owner it had when the row was read, unless a turn was relayed to that one since. */
  takeOver(row: OwnerRow, owner: string, fence: number): Statement {
    return this.#db.sql`WITH held AS (UPDATE chat_session_owner SET owner = ${owner}, fence = ${fence}
      WHERE session_id = ${row.session_id} AND owner = ${row.owner} AND fence = ${row.fence}
      AND relayed = ${row.relayed} RETURNING 1) SELECT svc_require(count(*) = 1) FROM held`
  }
  /**
   * For each batch of the owner. The lock makes whoever takes the session over wait for the batch, and a batch that
   * comes later finds another owner.
   */
  requireOwned({ session_id: id, owner, fence }: Omit<OwnerRow, 'relayed'>): Statement {
    return this.#db.sql`SELECT svc_require(count(*) = 1) FROM (SELECT 1 FROM chat_session_owner
      WHERE session_id = ${id} AND owner = ${owner} AND fence = ${fence} FOR SHARE) AS held`
  }
  /** The same for a new turn: every turn that was relayed before it has to be known to the owner. */
  requireNewest({ session_id: id, owner, fence, relayed }: OwnerRow): Statement {
    return this.#db.sql`SELECT svc_require(count(*) = 1) FROM (SELECT 1 FROM chat_session_owner
      WHERE session_id = ${id} AND owner = ${owner} AND fence = ${fence} AND relayed = ${relayed} FOR SHARE) AS held`
  }
  /** A turn for the owner of its session, in the order of the session. */
  relay(row: Omit<OwnerRow, 'relayed'>, turn: Omit<RelayedRow, 'number'>): Statement {
    return this.#db.sql`WITH held AS (UPDATE chat_session_owner SET relayed = relayed + 1
        WHERE session_id = ${row.session_id} AND owner = ${row.owner} AND fence = ${row.fence} RETURNING relayed),
      noted AS (INSERT INTO chat_relayed_turn (session_id, number, turn_id, accepted_by, sender)
        SELECT ${row.session_id}, relayed, ${turn.turn_id}, ${turn.accepted_by}, ${turn.sender} FROM held RETURNING 1)
      SELECT svc_require(count(*) = 1) FROM noted`
  }

  /** In the order of the session, those after one number. */
  async relayed(sessionId: string, after: number): Promise<readonly RelayedRow[]> {
    return v.parse(
      v.array(RelayedRow),
      await this.#db.all`SELECT number, turn_id, accepted_by, sender FROM chat_relayed_turn
        WHERE session_id = ${sessionId} AND number > ${after} ORDER BY number`,
    )
  }
  forgetRelayed(sessionId: string, upTo: number): Statement {
    return this.#db.sql`DELETE FROM chat_relayed_turn WHERE session_id = ${sessionId} AND number <= ${upTo}`
  }
  /** Ends the ownership of a session without open turns; nothing happens when a turn was relayed since. */
  giveUp({ session_id: id, owner, fence, relayed }: OwnerRow): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM chat_session_owner WHERE session_id = ${id} AND owner = ${owner} AND fence = ${fence}
        AND relayed = ${relayed}`,
      this.#db.sql`DELETE FROM chat_relayed_turn WHERE session_id = ${id}
        AND NOT EXISTS (SELECT 1 FROM chat_session_owner WHERE session_id = ${id})`,
    ]
  }
  /** Leaves a session with open turns to whoever takes it. */
  leave({ session_id: id, owner, fence }: Omit<OwnerRow, 'relayed'>): Statement {
    return this.#db.sql`UPDATE chat_session_owner SET owner = '' WHERE session_id = ${id} AND owner = ${owner}
      AND fence = ${fence}`
  }
}
