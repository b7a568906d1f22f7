import { newId } from 'svc/internal'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { UsageRecord } from './contract.ts'
import type { Sums } from './sums/store.ts'

/**
 * Times are ISO text in UTC, which sorts as it reads. A cost that is not known is null, which `sum` leaves out and
 * `unpriced` counts. It is whole in billionths of a dollar, and so it is summed: a sum of binary fractions would not be
 * exact.
 */
export class UsageStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  insert(record: UsageRecord, at: string): Statement {
    if (this.#db.dialect === 'postgresql') return this.#insertOnce(record, at)
    return this.#db
      .sql`INSERT INTO usage_record (recorded_at, agent_id, session_id, turn_id, provider, model, input_tokens,
        output_tokens, cached_input_tokens, cost_usd, estimated)
      VALUES (${at}, ${record.agentId}, ${record.sessionId}, ${record.turnId}, ${record.provider}, ${record.model},
        ${record.inputTokens}, ${record.outputTokens}, ${record.cachedInputTokens}, ${record.costUsd},
        ${record.estimated ? 1 : 0})`
  }
  #insertOnce(record: UsageRecord, at: string): Statement {
    return this.#db.sql`INSERT INTO usage_record (entry_id, recorded_at, agent_id, session_id, turn_id, provider, model,
        input_tokens, output_tokens, cached_input_tokens, cost_usd, estimated)
      VALUES (${newId()}, ${at}, ${record.agentId}, ${record.sessionId}, ${record.turnId}, ${record.provider},
        ${record.model}, ${record.inputTokens}, ${record.outputTokens}, ${record.cachedInputTokens},
        ${record.costUsd}, ${record.estimated ? 1 : 0}) ON CONFLICT DO NOTHING`
  }

  async agentTotals(agentId: string, sessionId: string | undefined): Promise<Sums> {
    const session = sessionId ?? null
    const row = await this.#db.one<Sums>`SELECT COALESCE(sum(input_tokens), 0) AS input_tokens,
        COALESCE(sum(output_tokens), 0) AS output_tokens,
        COALESCE(sum(CAST(round(cost_usd * 1000000000) AS BIGINT)), 0) / 1000000000.0 AS cost_usd,
          count(*) AS requests, count(*) - count(cost_usd) AS unpriced
      FROM usage_record WHERE agent_id = ${agentId} AND (CAST(${session} AS TEXT) IS NULL OR
        session_id = CAST(${session} AS TEXT))`
    return row ?? { input_tokens: 0, output_tokens: 0, cost_usd: 0, requests: 0, unpriced: 0 }
  }

  /** Each call of a model in one turn, oldest first. */
  ofTurn(
    agentId: string,
    sessionId: string,
    turnId: string,
  ): Promise<
    { provider: string; model: string; input_tokens: number; output_tokens: number; cost_usd: number | null }[]
  > {
    return this.#db.all`SELECT provider, model, input_tokens, output_tokens, cost_usd FROM usage_record
      WHERE agent_id = ${agentId} AND session_id = ${sessionId} AND turn_id = ${turnId} ORDER BY recorded_at, id`
  }

  keepName(agentId: string, name: string): Statement {
    return this.#db.sql`INSERT INTO usage_name (agent_id, name) VALUES (${agentId}, ${name}) ON CONFLICT (agent_id)
        DO UPDATE SET name = excluded.name`
  }
  /** Names of removed agents. */
  async formerNames(): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#db.all<{ id: string; name: string }>`SELECT agent_id AS id, name FROM usage_name
      WHERE agent_id IN (SELECT agent_id FROM usage_record)`
    return new Map(rows.map(({ id, name }) => [id, name]))
  }

  async firstDay(): Promise<string | null> {
    const row = await this.#db.one<{ at: string | null }>`SELECT min(recorded_at) AS at FROM usage_record`
    return row?.at?.slice(0, 10) ?? null
  }

  release(id: string): Statement {
    return this.#db.sql`DELETE FROM usage_claim WHERE id = ${id}`
  }
}
