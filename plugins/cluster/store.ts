import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Member } from './contract.ts'
import { AgreementRow, KeysRow, MemberRow, SectionsRow } from './schema.ts'
import type { EffectiveState, MemberState } from './schema.ts'

/** Every statement on `cluster_member`; but for `members` they are for PostgreSQL. */
export class MemberStore {
  readonly #db: PluginDatabase
  readonly #sections: RowReader<typeof SectionsRow>
  readonly #keys: RowReader<typeof KeysRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    const of = { table: 'cluster_config', key: ['member'], log }
    this.#sections = new RowReader({ ...of, schema: SectionsRow })
    this.#keys = new RowReader({ ...of, schema: KeysRow })
  }

  /** Also where the row is there already, because the database did not say so. */
  join(member: Member, leaseMs: number): Statement {
    return this.#db.sql`INSERT INTO cluster_member
      (id, home_id, name, host_name, address, version, started_at, state, lease_ms, beats)
      VALUES (${member.id}, ${member.homeId}, ${member.name}, ${member.hostName}, ${member.address ?? null},
      ${member.version}, ${member.startedAt}, ${member.state}, ${leaseMs}, 0)
      ON CONFLICT (id) DO UPDATE SET state = excluded.state, lease_ms = excluded.lease_ms`
  }
  /** Whether the row is still there. */
  async beat(id: string, leaseMs: number): Promise<boolean> {
    const { changes } = await this.#db
      .run`UPDATE cluster_member SET beats = beats + 1, lease_ms = ${leaseMs} WHERE id = ${id}`
    return changes > 0
  }
  setAddress(id: string, address: string, listens: string): Statement {
    return this.#db.sql`UPDATE cluster_member SET address = ${address}, listens = ${listens} WHERE id = ${id}`
  }
  setState(id: string, state: MemberState): Statement {
    return this.#db.sql`UPDATE cluster_member SET state = ${state} WHERE id = ${id}`
  }
  setLacks(id: string, lacks: string | null): Statement {
    return this.#db.sql`UPDATE cluster_member SET lacks = ${lacks} WHERE id = ${id}`
  }
  leave(id: string): Statement {
    return this.#db.sql`DELETE FROM cluster_member WHERE id = ${id}`
  }
  /** Of an earlier run on a home. */
  leaveEarlier(homeId: string): Statement {
    return this.#db.sql`DELETE FROM cluster_member WHERE home_id = ${homeId}`
  }
  /**
   * Fails its batch when the row has beaten again, is gone, or is held by a batch with `fence`: that one commits first,
   * and whoever commits is alive.
   */
  requireStill(id: string, beats: number): Statement {
    return this.#db.sql`SELECT svc_require(count(*) = 1) FROM
      (SELECT 1 FROM cluster_member WHERE id = ${id} AND beats <= ${beats} FOR UPDATE SKIP LOCKED) AS still`
  }
  /** Fails its batch when the row is gone. The lock keeps it there until the batch ends; beats go on meanwhile. */
  requireAlive(id: string): Statement {
    return this.#db.sql`SELECT svc_require(count(*) = 1) FROM
      (SELECT 1 FROM cluster_member WHERE id = ${id} FOR KEY SHARE) AS alive`
  }
  requireGone(id: string): Statement {
    return this.#db.sql`SELECT svc_require(count(*) = 0) FROM cluster_member WHERE id = ${id}`
  }
  /** The oldest first. */
  async members(): Promise<readonly MemberRow[]> {
    return v.parse(v.array(MemberRow), await this.#db.all`SELECT * FROM cluster_member ORDER BY started_at, id`)
  }

  /** Whether daemons of this version, or of one before that has all its tables, have been on the database. */
  async isThere(): Promise<boolean> {
    const found = await this.#db.one<{ readonly found: unknown }>`SELECT to_regclass('cluster_agreement') AS found`
    return found?.found != null
  }

  /** Replaces the digests of a member, and drops those of members that are gone. */
  async setDigests(member: string, sections: object, keys: object, told: readonly Statement[]): Promise<void> {
    await this.#db.batch([
      this.#db.sql`INSERT INTO cluster_config (member, sections, keys)
        VALUES (${member}, ${JSON.stringify(sections)}, ${JSON.stringify(keys)})
        ON CONFLICT (member) DO UPDATE SET sections = excluded.sections, keys = excluded.keys`,
      this.#db.sql`DELETE FROM cluster_config WHERE member NOT IN (SELECT id FROM cluster_member)`,
      ...told,
    ])
  }
  async sections(): Promise<readonly v.InferOutput<typeof SectionsRow>[]> {
    return this.#sections.all(await this.#db.all`SELECT member, sections FROM cluster_config`)
  }
  /** `undefined` when they cannot be read. */
  async keys(member: string): Promise<Readonly<Record<string, string>> | undefined> {
    const row = await this.#db.one`SELECT member, keys FROM cluster_config WHERE member = ${member}`
    return row === undefined ? {} : this.#keys.one(row)?.keys
  }

  /**
   * Fails its batch while another daemon works with another value. One daemon after the other: of two that start at once,
   * the second one sees the first.
   */
  agree(id: string, key: string, value: string): readonly Statement[] {
    return [
      this.#db.sql`SELECT pg_advisory_xact_lock(hashtextextended('cluster_agreement', 0))`,
      this.#db.sql`DELETE FROM cluster_agreement WHERE member NOT IN (SELECT id FROM cluster_member)`,
      this.#db.sql`INSERT INTO cluster_agreement (member, key, value) VALUES (${id}, ${key}, ${value})
        ON CONFLICT (member, key) DO UPDATE SET value = excluded.value`,
      this.#db.sql`SELECT svc_require(count(*) = 0) FROM cluster_agreement WHERE key = ${key} AND value <> ${value}`,
    ]
  }
  /** The others that work with another value. */
  async disagreeing(id: string, key: string, value: string): Promise<readonly v.InferOutput<typeof AgreementRow>[]> {
    const rows = await this.#db.all`SELECT name, value FROM cluster_agreement JOIN cluster_member ON id = member
      WHERE member <> ${id} AND key = ${key} AND value <> ${value} ORDER BY name`
    return v.parse(v.array(AgreementRow), rows)
  }

  commit(statements: readonly Statement[]): Promise<unknown> {
    return this.#db.batch(statements)
  }
}

/** What its operator wants of a daemon, and what it can do. */
export function stateOf({ state, lacks }: MemberRow): EffectiveState | 'unknown' {
  return state === 'active' && lacks !== null ? 'impaired' : state
}

export function toMember(row: MemberRow): Member {
  const state = stateOf(row)
  return {
    id: row.id,
    homeId: row.home_id,
    name: row.name,
    hostName: row.host_name,
    address: row.address ?? undefined,
    version: row.version,
    startedAt: row.started_at,
    state: state === 'stopping' ? 'draining' : state,
  }
}
