import type { PluginDatabase, Statement } from 'svc/sdk'
import type { AncestorLink } from './lineage.ts'
import type { SetLimits } from './limits.ts'

interface Row {
  readonly scope: string
  readonly hour_usd: number | null
  readonly day_usd: number | null
  readonly month_usd: number | null
  readonly hour_tokens: number | null
  readonly alert_threshold: number | null
  readonly default_hour_tokens: number | null
}

/** Limits that were set over the API, and notices that were sent. The empty scope is that of all agents. */
export class BudgetStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async limits(): Promise<ReadonlyMap<string, SetLimits>> {
    const rows = await this.#db.all<Row>`SELECT * FROM budgets_limit`
    return new Map(
      rows.map((row) => [
        row.scope,
        {
          hourUsd: row.hour_usd,
          dayUsd: row.day_usd,
          monthUsd: row.month_usd,
          hourTokens: row.hour_tokens,
          alertThreshold: row.alert_threshold,
          defaultHourTokens: row.default_hour_tokens,
        },
      ]),
    )
  }
  /** Of a row that is there only what is named in `change` changes: another daemon may have changed the rest. */
  set(scope: string, limits: SetLimits, change: { readonly [K in keyof SetLimits]?: unknown }): Statement {
    const keeps = (name: keyof SetLimits): number => Number(change[name] === undefined)
    return this.#db.sql`INSERT INTO budgets_limit (scope, hour_usd, day_usd, month_usd, hour_tokens, alert_threshold,
        default_hour_tokens)
      VALUES (${scope}, ${limits.hourUsd}, ${limits.dayUsd}, ${limits.monthUsd}, ${limits.hourTokens},
        ${limits.alertThreshold}, ${limits.defaultHourTokens})
      ON CONFLICT (scope) DO UPDATE SET
        hour_usd = CASE WHEN ${keeps('hourUsd')} = 1 THEN budgets_limit.hour_usd ELSE excluded.hour_usd END,
        day_usd = CASE WHEN ${keeps('dayUsd')} = 1 THEN budgets_limit.day_usd ELSE excluded.day_usd END,
        month_usd = CASE WHEN ${keeps('monthUsd')} = 1 THEN budgets_limit.month_usd ELSE excluded.month_usd END,
        hour_tokens = CASE WHEN ${keeps('hourTokens')} = 1 THEN budgets_limit.hour_tokens ELSE excluded.hour_tokens END,
        alert_threshold = CASE WHEN ${keeps('alertThreshold')} = 1 THEN budgets_limit.alert_threshold
          ELSE excluded.alert_threshold END,
        default_hour_tokens = CASE WHEN ${keeps('defaultHourTokens')} = 1 THEN budgets_limit.default_hour_tokens
          ELSE excluded.default_hour_tokens END`
  }
  /** Links outlive their agents, as long as what those spent counts. */
  ancestors(): Promise<AncestorLink[]> {
    return this.#db.all<AncestorLink>`SELECT ancestor_id AS "ancestorId", agent_id AS "agentId" FROM budgets_kin`
  }
  /** The links to these agents. Only where several daemons share a database. */
  descendantsOf(ids: readonly string[]): Promise<AncestorLink[]> {
    return this.#db.all<AncestorLink>`SELECT ancestor_id AS "ancestorId", agent_id AS "agentId" FROM budgets_kin
      WHERE ancestor_id IN (SELECT json_array_elements_text(CAST(${JSON.stringify(ids)} AS json)))`
  }
  addAncestor({ ancestorId, agentId }: AncestorLink): Statement {
    return this.#db.sql`INSERT INTO budgets_kin (ancestor_id, agent_id) VALUES (${ancestorId}, ${agentId})
        ON CONFLICT (ancestor_id, agent_id) DO NOTHING`
  }
  removeAncestor({ ancestorId, agentId }: AncestorLink): Statement {
    return this.#db.sql`DELETE FROM budgets_kin WHERE ancestor_id = ${ancestorId} AND agent_id = ${agentId}`
  }
  remove(scope: string, also: readonly Statement[]): Promise<unknown> {
    return this.#db.batch([
      this.#db.sql`DELETE FROM budgets_limit WHERE scope = ${scope}`,
      this.#db.sql`DELETE FROM budgets_notice WHERE scope = ${scope}`,
      ...also,
    ])
  }
  write(statements: readonly Statement[]): Promise<unknown> {
    return this.#db.batch(statements)
  }

  /** Whether this notice was not sent before, by this process or another one. */
  async claimNotice(scope: string, notice: string, at: string): Promise<boolean> {
    const { changes } = await this.#db
      .run`INSERT INTO budgets_notice (scope, notice, told_at) VALUES (${scope}, ${notice}, ${at})
        ON CONFLICT (scope, notice) DO NOTHING`
    return changes > 0
  }
  async forget(before: string): Promise<void> {
    await this.#db.run`DELETE FROM budgets_notice WHERE told_at < ${before}`
  }
}
