import * as v from 'valibot'
import { readOwnJson, RowReader } from 'svc/internal'
import type { Changes, Logger, PluginDatabase, Statement } from 'svc/sdk'
import { Values } from './schema.ts'

const Row = v.pipe(
  v.object({
    id: v.string(),
    hand_id: v.string(),
    name: v.string(),
    agent_id: v.string(),
    schedule_id: v.string(),
    settings: v.pipe(
      v.string(),
      v.transform((text): unknown => readOwnJson(text)),
      Values,
    ),
    definition: v.string(),
    version: v.pipe(v.union([v.number(), v.string()]), v.transform(Number)),
    activated_at: v.string(),
    updated_at: v.string(),
  }),
  v.transform((row): Instance => ({
    id: row.id,
    handId: row.hand_id,
    name: row.name,
    agentId: row.agent_id,
    scheduleId: row.schedule_id,
    settings: row.settings,
    definition: row.definition,
    version: row.version,
    activatedAt: row.activated_at,
    updatedAt: row.updated_at,
  })),
)
export interface Instance {
  readonly id: string
  readonly handId: string
  readonly name: string
  readonly agentId: string
  readonly scheduleId: string
  readonly settings: Values
  /** HAND.toml as it was when it was activated. */
  readonly definition: string
  readonly version: number
  /** ISO 8601 UTC. */
  readonly activatedAt: string
  readonly updatedAt: string
}

/** The statements on instances. */
export class InstanceStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof Row>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'hands_instance', key: ['id'], schema: Row, log })
  }

  /** With too many instances the name becomes NULL, which the column refuses, so that the batch fails as a whole. */
  insert(instance: Instance, max: number): Statement {
    const { id, handId, name, agentId, scheduleId, settings, definition, activatedAt, updatedAt } = instance
    return {
      ...this.#db.sql`INSERT INTO hands_instance
        (id, hand_id, name, agent_id, schedule_id, settings, definition, version, activated_at, updated_at)
      VALUES (${id}, ${handId}, CASE WHEN (SELECT COUNT(*) FROM hands_instance) < ${max} THEN CAST(${name} AS TEXT) END,
        ${agentId}, ${scheduleId}, ${JSON.stringify(settings)}, ${definition}, 1, ${activatedAt}, ${updatedAt})`,
      exclusive: 'hands_instance',
    }
  }
  /** Makes its batch fail when the instance has changed since it was read. */
  update({ id, settings, version }: Instance, now: string): Statement {
    return this.#db.sql`UPDATE hands_instance SET
        version = CASE WHEN version = ${version} THEN version + 1 END,
        settings = ${JSON.stringify(settings)}, updated_at = ${now}
      WHERE id = ${id}`
  }
  remove(agentId: string): Statement {
    return this.#db.sql`DELETE FROM hands_instance WHERE agent_id = ${agentId}`
  }

  async find(id: string): Promise<Instance | undefined> {
    return this.#one(await this.#db.one`SELECT * FROM hands_instance WHERE id = ${id}`)
  }
  async ofAgent(agentId: string): Promise<Instance | undefined> {
    return this.#one(await this.#db.one`SELECT * FROM hands_instance WHERE agent_id = ${agentId}`)
  }
  async ofSchedule(scheduleId: string): Promise<Instance | undefined> {
    return this.#one(await this.#db.one`SELECT * FROM hands_instance WHERE schedule_id = ${scheduleId}`)
  }
  /** Oldest first; of one hand, or of all. */
  async list(handId?: string): Promise<readonly Instance[]> {
    const hand = handId ?? null
    return this.#rows.all(
      await this.#db.all`SELECT * FROM hands_instance
        WHERE (CAST(${hand} AS TEXT) IS NULL OR hand_id = ${hand}) ORDER BY activated_at, id`,
    )
  }
  commit(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#db.batch(statements)
  }

  #one(row: unknown): Instance | undefined {
    return row === undefined ? undefined : this.#rows.one(row)
  }
}

/** An agent of an instance beside its coordinator. */
export interface Member {
  readonly instanceId: string
  readonly role: string
  readonly agentId: string
}
interface MemberRow {
  readonly instance_id: string
  readonly role: string
  readonly agent_id: string
}
const toMember = (row: MemberRow): Member => ({ instanceId: row.instance_id, role: row.role, agentId: row.agent_id })

/** The statements on agents beside the coordinators. */
export class MemberStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** Makes its batch fail when the instance has ended, or has an agent of that role. */
  insert({ instanceId, role, agentId }: Member): Statement {
    return this.#db.sql`INSERT INTO hands_member (instance_id, role, agent_id)
      VALUES ((SELECT id FROM hands_instance WHERE id = ${instanceId}), ${role}, ${agentId})`
  }
  remove(agentId: string): Statement {
    return this.#db.sql`DELETE FROM hands_member WHERE agent_id = ${agentId}`
  }
  async of(instanceId: string): Promise<readonly Member[]> {
    const rows = await this.#db
      .all<MemberRow>`SELECT * FROM hands_member WHERE instance_id = ${instanceId} ORDER BY role`
    return rows.map(toMember)
  }
  async ofAgent(agentId: string): Promise<Member | undefined> {
    const row = await this.#db.one<MemberRow>`SELECT * FROM hands_member WHERE agent_id = ${agentId}`
    return row && toMember(row)
  }
  /** Those whose instance has ended before they did. */
  async left(): Promise<readonly Member[]> {
    const rows = await this.#db.all<MemberRow>`SELECT * FROM hands_member
      WHERE NOT EXISTS (SELECT 1 FROM hands_instance WHERE hands_instance.id = hands_member.instance_id)`
    return rows.map(toMember)
  }
}
