import type { PluginDatabase, Statement } from 'svc/sdk'
import { bodyOf, ORIGIN, TAG } from './chain.ts'
import type { Fields, Link } from './chain.ts'
import type { Writers } from './writers/writers.ts'

export interface Filter {
  readonly agentId: string | undefined
  readonly eventType: string | undefined
}
/** ISO 8601 UTC; `since` and `until` included, `before` the number of an entry. */
export interface Period {
  readonly since: string | undefined
  readonly until: string | undefined
  readonly before: number | undefined
}

/** Entries with their numbers: those of other daemons, and the newest of this one, may still wait for theirs. */
export class AuditStore {
  readonly #db: PluginDatabase
  readonly #writers: Pick<Writers, 'append'> | undefined
  /** `writers`: where other daemons may write to the same database. */
  constructor(db: PluginDatabase, writers?: Pick<Writers, 'append'>) {
    this.#db = db
    this.#writers = writers
  }

  /**
   * One statement, so that no other entry can come between reading the tip and adding to it. A selection from the table
   * itself would be put into a temporary one first, which costs more than looking for the tip twice.
   */
  append(fields: Fields): Statement {
    if (this.#writers) return this.#writers.append(fields)
    const statement = this.#db
      .sql`INSERT INTO audit_entry (id, timestamp, event_type, agent_id, details, actor, prev_hash, hash)
      VALUES (
        COALESCE((SELECT max(id) FROM audit_entry), 0) + 1,
        ${fields.timestamp}, ${fields.event_type}, ${fields.agent_id}, ${fields.details}, ${fields.actor ?? ''},
        COALESCE((SELECT hash FROM audit_entry ORDER BY id DESC LIMIT 1), CAST(${ORIGIN} AS TEXT)),
        svc_sha256(
          CAST(${TAG} AS TEXT)
          || ':' || CAST(COALESCE((SELECT max(id) FROM audit_entry), 0) + 1 AS TEXT)
          || ':' || COALESCE((SELECT hash FROM audit_entry ORDER BY id DESC LIMIT 1), CAST(${ORIGIN} AS TEXT))
          || ':' || CAST(${bodyOf(fields)} AS TEXT)))`
    return { ...statement, exclusive: 'audit_entry' }
  }

  write(statement: Statement): Promise<unknown> {
    return this.#db.batch([statement])
  }

  // All columns: an older database, as `svc audit verify` may read one, has no `actor`.
  /** In order of their numbers, beginning after `id`. */
  after(id: number, limit: number): Promise<Link[]> {
    return this.#db.all<Link>`SELECT * FROM audit_entry WHERE id > ${id} ORDER BY id LIMIT ${limit}`
  }
  find(id: number): Promise<Link | undefined> {
    return this.#db.one<Link>`SELECT * FROM audit_entry WHERE id = ${id}`
  }
  /** The newest one. */
  tip(): Promise<Link | undefined> {
    return this.#db.one<Link>`SELECT * FROM audit_entry ORDER BY id DESC LIMIT 1`
  }

  /** The newest ones, newest last. */
  async recent(limit: number, { agentId, eventType }: Filter): Promise<Link[]> {
    const rows =
      agentId !== undefined && eventType !== undefined
        ? await this.#db.all<Link>`SELECT * FROM audit_entry WHERE agent_id = ${agentId} AND event_type = ${eventType}
              ORDER BY id DESC LIMIT ${limit}`
        : agentId !== undefined
          ? await this.#db
              .all<Link>`SELECT * FROM audit_entry WHERE agent_id = ${agentId} ORDER BY id DESC LIMIT ${limit}`
          : eventType !== undefined
            ? await this.#db
                .all<Link>`SELECT * FROM audit_entry WHERE event_type = ${eventType} ORDER BY id DESC LIMIT ${limit}`
            : await this.#db.all<Link>`SELECT * FROM audit_entry ORDER BY id DESC LIMIT ${limit}`
    return rows.toReversed()
  }

  /** As `recent`, within a period. Times have no index, because every entry would pay for it. */
  async within(limit: number, { agentId, eventType }: Filter, { since, until, before }: Period): Promise<Link[]> {
    const [agent, event, from, to, last] = [
      agentId ?? null,
      eventType ?? null,
      since ?? null,
      until ?? null,
      before ?? null,
    ]
    const rows = await this.#db
      .all<Link>`SELECT * FROM audit_entry WHERE (CAST(${last} AS INTEGER) IS NULL OR id < CAST(${last} AS INTEGER))
      AND (CAST(${agent} AS TEXT) IS NULL OR agent_id = CAST(${agent} AS TEXT))
      AND (CAST(${event} AS TEXT) IS NULL OR event_type = CAST(${event} AS TEXT))
      AND (CAST(${from} AS TEXT) IS NULL OR timestamp >= CAST(${from} AS TEXT))
      AND (CAST(${to} AS TEXT) IS NULL OR timestamp <= CAST(${to} AS TEXT))
      ORDER BY id DESC LIMIT ${limit}`
    return rows.toReversed()
  }
  async countWithin({ agentId, eventType }: Filter, { since, until, before }: Period): Promise<number> {
    const [agent, event, from, to, last] = [
      agentId ?? null,
      eventType ?? null,
      since ?? null,
      until ?? null,
      before ?? null,
    ]
    const row = await this.#db.one<{
      n: number
    }>`SELECT count(*) AS n FROM audit_entry WHERE (CAST(${last} AS INTEGER) IS NULL OR id < CAST(${last} AS INTEGER))
      AND (CAST(${agent} AS TEXT) IS NULL OR agent_id = CAST(${agent} AS TEXT))
      AND (CAST(${event} AS TEXT) IS NULL OR event_type = CAST(${event} AS TEXT))
      AND (CAST(${from} AS TEXT) IS NULL OR timestamp >= CAST(${from} AS TEXT))
      AND (CAST(${to} AS TEXT) IS NULL OR timestamp <= CAST(${to} AS TEXT))`
    return row?.n ?? 0
  }
  /** Removes the beginning of the chain, up to this entry. */
  drop(upTo: number): Statement {
    return this.#db.sql`DELETE FROM audit_entry WHERE id <= ${upTo}`
  }

  /** Newest first. */
  concerning(agentId: string, before: number, limit: number): Promise<Link[]> {
    return this.#db.all<Link>`SELECT * FROM audit_entry WHERE agent_id = ${agentId} AND id < ${before} ORDER BY id DESC
        LIMIT ${limit}`
  }

  /** The number of entries. Without a filter it is computed from both ends, since the ids have no gaps. */
  async count({ agentId, eventType }: Filter): Promise<number> {
    const row =
      agentId !== undefined && eventType !== undefined
        ? await this.#db.one<{
            n: number
          }>`SELECT count(*) AS n FROM audit_entry WHERE agent_id = ${agentId} AND event_type = ${eventType}`
        : agentId !== undefined
          ? await this.#db.one<{ n: number }>`SELECT count(*) AS n FROM audit_entry WHERE agent_id = ${agentId}`
          : eventType !== undefined
            ? await this.#db.one<{ n: number }>`SELECT count(*) AS n FROM audit_entry WHERE event_type = ${eventType}`
            : await this.#db.one<{
                n: number
              }>`SELECT COALESCE((SELECT max(id) FROM audit_entry) - (SELECT min(id) FROM audit_entry) + 1, 0) AS n`
    return row?.n ?? 0
  }
}
