import type { PluginDatabase, Statement } from 'svc/sdk'
import type { UsageRecord } from './contract.ts'

interface Sums { readonly input_tokens: number; readonly output_tokens: number; readonly cost_usd: number; readonly requests: number; readonly unpriced: number }
export interface Totals extends Sums { readonly agents: number; readonly estimated: number }
export type Group<K extends string> = Sums & Readonly<Record<K, string>>
export interface Day extends Sums { readonly date: string }

/** Times are ISO text in UTC, which sorts as it reads. A cost that is not known is null, which `sum` leaves out and `unpriced` counts. */
export class UsageStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) { this.#db = db }

  insert(record: UsageRecord, at: string): Statement {
    return this.#db.sql`INSERT INTO usage_record (recorded_at, agent_id, session_id, turn_id, provider, model, input_tokens, output_tokens, cached_input_tokens, cost_usd, estimated)
      VALUES (${at}, ${record.agentId}, ${record.sessionId}, ${record.turnId}, ${record.provider}, ${record.model},
        ${record.inputTokens}, ${record.outputTokens}, ${record.cachedInputTokens}, ${record.costUsd}, ${record.estimated ? 1 : 0})`
  }

  async totals(since: string): Promise<Totals> {
    const row = await this.#db.one<Totals>`SELECT COALESCE(sum(input_tokens), 0) AS input_tokens, COALESCE(sum(output_tokens), 0) AS output_tokens,
        COALESCE(sum(cost_usd), 0) AS cost_usd, count(*) AS requests, count(*) - count(cost_usd) AS unpriced,
        count(DISTINCT agent_id) AS agents, COALESCE(sum(estimated), 0) AS estimated
      FROM usage_record WHERE recorded_at >= ${since}`
    return row ?? { input_tokens: 0, output_tokens: 0, cost_usd: 0, requests: 0, unpriced: 0, agents: 0, estimated: 0 }
  }

  async agentTotals(agentId: string, sessionId: string | undefined): Promise<Sums> {
    const session = sessionId ?? null
    const row = await this.#db.one<Sums>`SELECT COALESCE(sum(input_tokens), 0) AS input_tokens, COALESCE(sum(output_tokens), 0) AS output_tokens,
        COALESCE(sum(cost_usd), 0) AS cost_usd, count(*) AS requests, count(*) - count(cost_usd) AS unpriced
      FROM usage_record WHERE agent_id = ${agentId} AND (CAST(${session} AS TEXT) IS NULL OR session_id = CAST(${session} AS TEXT))`
    return row ?? { input_tokens: 0, output_tokens: 0, cost_usd: 0, requests: 0, unpriced: 0 }
  }

  /** Each call of a model in one turn, oldest first. */
  ofTurn(agentId: string, sessionId: string, turnId: string): Promise<{ provider: string; model: string; input_tokens: number; output_tokens: number; cost_usd: number | null }[]> {
    return this.#db.all`SELECT provider, model, input_tokens, output_tokens, cost_usd FROM usage_record
      WHERE agent_id = ${agentId} AND session_id = ${sessionId} AND turn_id = ${turnId} ORDER BY recorded_at, id`
  }

  byModel(): Promise<(Group<'model'> & Group<'provider'>)[]> {
    return this.#db.all`SELECT model, provider, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, COALESCE(sum(cost_usd), 0) AS cost_usd,
      count(*) AS requests, count(*) - count(cost_usd) AS unpriced FROM usage_record GROUP BY model, provider ORDER BY requests DESC, model, provider`
  }
  byProvider(): Promise<Group<'provider'>[]> {
    return this.#db.all`SELECT provider, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, COALESCE(sum(cost_usd), 0) AS cost_usd,
      count(*) AS requests, count(*) - count(cost_usd) AS unpriced FROM usage_record GROUP BY provider ORDER BY requests DESC, provider`
  }
  byAgent(): Promise<Group<'agent_id'>[]> {
    return this.#db.all`SELECT agent_id, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, COALESCE(sum(cost_usd), 0) AS cost_usd,
      count(*) AS requests, count(*) - count(cost_usd) AS unpriced FROM usage_record GROUP BY agent_id ORDER BY requests DESC, agent_id`
  }

  /** One row for each UTC day on which something was used, oldest first. */
  daily(since: string): Promise<Day[]> {
    return this.#db.all`SELECT substr(recorded_at, 1, 10) AS date, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, COALESCE(sum(cost_usd), 0) AS cost_usd,
      count(*) AS requests, count(*) - count(cost_usd) AS unpriced FROM usage_record WHERE recorded_at >= ${since} GROUP BY substr(recorded_at, 1, 10) ORDER BY date`
  }
  async firstDay(): Promise<string | null> {
    const row = await this.#db.one<{ at: string | null }>`SELECT min(recorded_at) AS at FROM usage_record`
    return row?.at?.slice(0, 10) ?? null
  }
}
