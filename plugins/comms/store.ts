import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Changes, Logger, PluginDatabase, Statement } from 'svc/sdk'
import { CommsEvent } from './schema.ts'

const integer = v.pipe(v.union([v.number(), v.string()]), v.transform(Number))
const Row = v.pipe(
  v.object({ ...CommsEvent.entries, sequence: integer }),
  v.transform(({ sequence, ...event }) => ({ sequence, event })),
)
export type StoredEvent = v.InferOutput<typeof Row>
const Number1 = v.object({ value: v.nullable(integer) })
const Pair = v.object({ source_id: v.string(), target_id: v.string() })

export class CommsStore {
  readonly #db: PluginDatabase
  readonly #events: RowReader<typeof Row>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#events = new RowReader({ table: 'comms_event', key: ['id'], schema: Row, log })
  }

  /** The second event with an id is not added. `added` is called once it is on disk. */
  insert(event: CommsEvent, added: () => void): Statement {
    const statement = this.#db.sql`INSERT INTO comms_event
        (id, sequence, timestamp, kind, source_id, source_name, target_id, target_name, detail)
      VALUES (${event.id}, COALESCE((SELECT MAX(sequence) FROM comms_event), 0) + 1, ${event.timestamp}, ${event.kind},
        ${event.source_id}, ${event.source_name}, ${event.target_id}, ${event.target_name}, ${event.detail})
      ON CONFLICT (id) DO NOTHING`
    return { ...statement, exclusive: 'comms_event', written: (changes) => void (changes > 0 && added()) }
  }
  /** Newest first. */
  async recent(limit: number): Promise<readonly CommsEvent[]> {
    const rows = await this.#db.all`SELECT * FROM comms_event ORDER BY timestamp DESC, sequence DESC LIMIT ${limit}`
    return this.#events.all(rows).map(({ event }) => event)
  }
  /** In the order in which they were added. */
  async after(sequence: number, limit: number): Promise<readonly StoredEvent[]> {
    const rows = await this.#db.all`SELECT * FROM comms_event WHERE sequence > ${sequence}
      ORDER BY sequence LIMIT ${limit}`
    return this.#events.all(rows)
  }
  async newest(): Promise<number> {
    const row = await this.#db.one`SELECT MAX(sequence) AS value FROM comms_event`
    return v.parse(Number1, row).value ?? 0
  }
  /** Sender and receiver of the newest messages of agents, the newest first. */
  async pairs(limit: number): Promise<readonly v.InferOutput<typeof Pair>[]> {
    const rows = await this.#db.all`SELECT source_id, target_id FROM comms_event
      WHERE kind = 'agent_message' ORDER BY timestamp DESC, sequence DESC LIMIT ${limit}`
    return v.parse(v.array(Pair), rows)
  }

  /** The number of the last entry of the audit trail that was read; `undefined` before the first time. */
  async position(): Promise<number | undefined> {
    const row = await this.#db.one`SELECT position AS value FROM comms_position WHERE id = 1`
    return v.parse(v.optional(Number1), row)?.value ?? undefined
  }
  /** Never moves back: another daemon may have read further. */
  advance(position: number): Statement {
    return this.#db.sql`INSERT INTO comms_position (id, position) VALUES (1, ${position})
      ON CONFLICT (id) DO UPDATE SET position = CASE
        WHEN comms_position.position < ${position} THEN ${position} ELSE comms_position.position END`
  }

  /** All but the newest. */
  deleteOld(keep: number): Statement {
    return this.#db.sql`DELETE FROM comms_event
      WHERE sequence <= COALESCE((SELECT MAX(sequence) FROM comms_event), 0) - ${keep}`
  }
  commit(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#db.batch(statements)
  }
}

/** For the batch that removes an agent: what it wrote and was written goes with it. */
export function forgetTexts(db: PluginDatabase, agentId: string): Statement {
  return db.sql`UPDATE comms_event SET detail = ''
    WHERE kind = 'agent_message' AND (source_id = ${agentId} OR target_id = ${agentId})`
}
