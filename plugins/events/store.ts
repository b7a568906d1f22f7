import * as v from 'valibot'
import { readOwnJson, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { PublishedEvent } from './contract.ts'

const json = v.pipe(
  v.string(),
  v.transform((text): unknown => readOwnJson(text)),
)
const Row = v.pipe(
  v.object({
    id: v.string(),
    event_type: v.string(),
    payload: json,
    agent_id: v.string(),
    labels: v.pipe(json, v.array(v.string())),
    at: v.string(),
  }),
  v.transform(({ id, event_type: eventType, payload, agent_id: agentId, labels, at }): PublishedEvent => {
    return { id, eventType, payload, agentId, labels, at }
  }),
)

export class EventStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof Row>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'events_event', key: ['id'], schema: Row, log })
  }

  async find(id: string): Promise<PublishedEvent | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM events_event WHERE id = ${id}`)
  }
  insert({ id, eventType, payload, agentId, labels, at }: PublishedEvent): Statement {
    return this.#db.sql`INSERT INTO events_event (id, event_type, payload, agent_id, labels, at)
      VALUES (${id}, ${eventType}, ${JSON.stringify(payload)}, ${agentId}, ${JSON.stringify(labels)}, ${at})`
  }
  deleteOf(agentId: string): Statement {
    return this.#db.sql`DELETE FROM events_event WHERE agent_id = ${agentId}`
  }
  deleteBefore(at: string): Statement {
    return this.#db.sql`DELETE FROM events_event WHERE at < ${at}`
  }
  async commit(...statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
