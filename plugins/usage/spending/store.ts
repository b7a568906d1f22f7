import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Claim, ClaimLimits, SpendLimits, SpendRank, Spent } from '../contract.ts'

/** Later than any commit that began then. */
const SETTLED_MS = 15_000
/** No limit: more than anyone can spend, and still exact. */
const NONE = Number.MAX_SAFE_INTEGER

/** What was spent and is set aside, and every claim on what is left. Loaded with the first call of a model. */
export class SpendingStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** Adds at most `most` records to the sums; how many numbers it went on by. */
  async fold(maxRows: number): Promise<number> {
    await this.#db.batch(this.#folding(maxRows))
    const row = await this.#db.one<{ added: number }>`SELECT to_id - from_id AS added FROM usage_fold WHERE id = 1`
    return row?.added ?? 0
  }

  /** The first statement holds the row until the end, so that claims of several processes follow each other. */
  #folding(maxRows: number): Statement[] {
    // A transaction of another process may bring older records than it is itself; after this long it has ended.
    const settled = this.#db.dialect === 'sqlite' ? '~' : new Date(Date.now() - SETTLED_MS).toISOString()
    return [
      this.#db.sql`UPDATE usage_fold SET from_id = to_id, to_id = COALESCE((SELECT id FROM usage_record
        WHERE id > usage_fold.to_id AND id <= usage_fold.to_id + CAST(${maxRows} AS BIGINT)
        AND recorded_at || '' < ${settled} ORDER BY id DESC LIMIT 1), to_id) WHERE id = 1`,
      this.#db.sql`INSERT INTO usage_tally (scope, period, nano, tokens, calls, unpriced)
        SELECT CASE WHEN span.own = 1 THEN agent_id ELSE '' END AS scope, substr(hour, 1, span.length) AS period,
          sum(nano), sum(tokens), sum(calls), sum(unpriced) FROM (
          SELECT agent_id, substr(recorded_at, 1, 13) AS hour,
            COALESCE(sum(CAST(round(cost_usd * 1000000000) AS BIGINT)), 0) AS nano,
            sum(input_tokens + output_tokens) AS tokens,
            count(*) AS calls, count(*) - count(cost_usd) AS unpriced
          FROM usage_record WHERE id > (SELECT from_id FROM usage_fold WHERE id = 1)
            AND id <= (SELECT to_id FROM usage_fold WHERE id = 1) GROUP BY agent_id, substr(recorded_at, 1, 13)
        ) AS fresh CROSS JOIN (
          SELECT 0 AS own, 13 AS length UNION ALL SELECT 0, 10 UNION ALL SELECT 0, 7 UNION ALL SELECT 0, 0 UNION ALL
            SELECT 1, 13 UNION ALL SELECT 1, 10 UNION ALL SELECT 1, 7 UNION ALL SELECT 1, 0
        ) AS span WHERE true GROUP BY CASE WHEN span.own = 1 THEN agent_id ELSE '' END, substr(hour, 1, span.length)
        ON CONFLICT (scope, period) DO UPDATE SET nano = usage_tally.nano + excluded.nano,
          tokens = usage_tally.tokens + excluded.tokens,
          calls = usage_tally.calls + excluded.calls, unpriced = usage_tally.unpriced + excluded.unpriced`,
    ]
  }

  /** `scope` is an agent, or the empty name for all. */
  async spent(scope: string, at: string): Promise<Spent> {
    const [hour, day, month] = [at.slice(0, 13), at.slice(0, 10), at.slice(0, 7)]
    const row = await this.#db.one<Spent>`SELECT
        COALESCE(sum(CASE WHEN period = ${hour} THEN nano ELSE 0 END), 0) AS "hourNano",
          COALESCE(sum(CASE WHEN period = ${day} THEN nano ELSE 0 END), 0) AS "dayNano",
        COALESCE(sum(CASE WHEN period = ${month} THEN nano ELSE 0 END), 0) AS "monthNano",
          COALESCE(sum(CASE WHEN period = ${hour} THEN tokens ELSE 0 END), 0) AS "hourTokens",
        COALESCE(sum(CASE WHEN period = ${day} THEN unpriced ELSE 0 END), 0) AS "unpricedToday",
        (SELECT COALESCE(sum(nano), 0) FROM usage_claim WHERE expires_at > ${at}
          AND (CAST(${scope} AS TEXT) = '' OR agent_id = CAST(${scope} AS TEXT))) AS "heldNano",
        (SELECT COALESCE(sum(tokens), 0) FROM usage_claim WHERE expires_at > ${at}
          AND (CAST(${scope} AS TEXT) = '' OR agent_id = CAST(${scope} AS TEXT))) AS "heldTokens"
      FROM (
        SELECT period, nano, tokens, unpriced FROM usage_tally WHERE scope = ${scope}
          AND period IN (${hour}, ${day}, ${month})
        UNION ALL
        SELECT substr(recorded_at, 1, span.length), COALESCE(CAST(round(cost_usd * 1000000000) AS BIGINT), 0),
          input_tokens + output_tokens, CASE WHEN cost_usd IS NULL THEN 1 ELSE 0 END
        FROM usage_record CROSS JOIN (SELECT 13 AS length UNION ALL SELECT 10 UNION ALL SELECT 7) AS span
        WHERE id > (SELECT to_id FROM usage_fold WHERE id = 1)
          AND (CAST(${scope} AS TEXT) = '' OR agent_id = CAST(${scope} AS TEXT))
      ) AS used`
    return row ?? { hourNano: 0, dayNano: 0, monthNano: 0, hourTokens: 0, heldNano: 0, heldTokens: 0, unpricedToday: 0 }
  }

  /** Whether there was room. Looking and taking are one statement. */
  async claim(claim: Claim, { all, agent, shared = [] }: ClaimLimits, at: string, maxRows: number): Promise<boolean> {
    const { id, agentId, nano, tokens, expiresAt } = claim
    const [hour, day, month] = [at.slice(0, 13), at.slice(0, 10), at.slice(0, 7)]
    const outcomes = await this.#db.batch([
      ...this.#folding(maxRows),
      this.#db.sql`DELETE FROM usage_claim WHERE expires_at <= ${at}`,
      this.#db.sql`INSERT INTO usage_claim (id, agent_id, nano, tokens, expires_at)
        SELECT CAST(${id} AS TEXT), CAST(${agentId} AS TEXT), CAST(${nano} AS BIGINT), CAST(${tokens} AS BIGINT),
          CAST(${expiresAt} AS TEXT)
        FROM (
          SELECT COALESCE(sum(CASE WHEN scope = '' AND period = ${hour} THEN nano ELSE 0 END), 0) AS all_hour,
            COALESCE(sum(CASE WHEN scope = '' AND period = ${day} THEN nano ELSE 0 END), 0) AS all_day,
            COALESCE(sum(CASE WHEN scope = '' AND period = ${month} THEN nano ELSE 0 END), 0) AS all_month,
            COALESCE(sum(CASE WHEN scope <> '' AND period = ${hour} THEN nano ELSE 0 END), 0) AS own_hour,
              COALESCE(sum(CASE WHEN scope <> '' AND period = ${day} THEN nano ELSE 0 END), 0) AS own_day,
            COALESCE(sum(CASE WHEN scope <> '' AND period = ${month} THEN nano ELSE 0 END), 0) AS own_month,
              COALESCE(sum(CASE WHEN scope <> '' AND period = ${hour} THEN tokens ELSE 0 END), 0) AS own_tokens
          FROM (
            SELECT scope, period, nano, tokens FROM usage_tally WHERE scope IN ('', ${agentId})
              AND period IN (${hour}, ${day}, ${month})
            UNION ALL
            SELECT CASE WHEN span.own = 1 THEN agent_id ELSE '' END, substr(recorded_at, 1, span.length),
              COALESCE(CAST(round(cost_usd * 1000000000) AS BIGINT), 0), input_tokens + output_tokens
            FROM usage_record CROSS JOIN (SELECT 0 AS own, 13 AS length UNION ALL SELECT 0, 10 UNION ALL SELECT 0, 7
              UNION ALL SELECT 1, 13 UNION ALL SELECT 1, 10 UNION ALL SELECT 1, 7) AS span
            WHERE id > (SELECT to_id FROM usage_fold WHERE id = 1) AND (span.own = 0 OR agent_id = ${agentId})
          ) AS spent
        ) AS used CROSS JOIN (
          SELECT COALESCE(sum(nano), 0) + CAST(${nano} AS BIGINT) AS of_all,
            COALESCE(sum(CASE WHEN agent_id = ${agentId} THEN nano ELSE 0 END), 0) + CAST(${nano} AS BIGINT) AS of_own,
            COALESCE(sum(CASE WHEN agent_id = ${agentId} THEN tokens ELSE 0 END), 0) +
              CAST(${tokens} AS BIGINT) AS tokens
          FROM usage_claim
        ) AS held
        WHERE all_hour + of_all <= CAST(${all.hourNano ?? NONE} AS BIGINT) AND all_day + of_all <=
          CAST(${all.dayNano ?? NONE} AS BIGINT) AND all_month + of_all <= CAST(${all.monthNano ?? NONE} AS BIGINT)
          AND own_hour + of_own <= CAST(${agent.hourNano ?? NONE} AS BIGINT) AND own_day + of_own <=
            CAST(${agent.dayNano ?? NONE} AS BIGINT) AND own_month + of_own <=
            CAST(${agent.monthNano ?? NONE} AS BIGINT)
          AND own_tokens + held.tokens <= CAST(${agent.hourTokens ?? NONE} AS BIGINT)`,
      ...shared.map(({ agentIds, limits }) => this.#unclaim(id, agentIds, limits, at)),
    ])
    const [inserted, ...taken] = outcomes.slice(outcomes.length - 1 - shared.length)
    return inserted?.changes === 1 && taken.every(({ changes }) => changes === 0)
  }
  /** Takes a claim back, in the batch that makes it, when these agents would pass their limits with it. */
  #unclaim(id: string, agentIds: readonly string[], limits: SpendLimits, at: string): Statement {
    const [hour, day, month] = [at.slice(0, 13), at.slice(0, 10), at.slice(0, 7)]
    const ids = JSON.stringify(agentIds)
    const members =
      this.#db.dialect === 'sqlite'
        ? 'SELECT value FROM json_each(?)'
        : 'SELECT json_array_elements_text(CAST(? AS json))'
    return {
      sql: `DELETE FROM usage_claim WHERE id = ? AND NOT EXISTS (
        SELECT 1 FROM (
          SELECT COALESCE(sum(CASE WHEN period = ? THEN nano ELSE 0 END), 0) AS of_hour,
            COALESCE(sum(CASE WHEN period = ? THEN nano ELSE 0 END), 0) AS of_day,
            COALESCE(sum(CASE WHEN period = ? THEN nano ELSE 0 END), 0) AS of_month,
            COALESCE(sum(CASE WHEN period = ? THEN tokens ELSE 0 END), 0) AS tokens
          FROM (
            SELECT period, nano, tokens FROM usage_tally WHERE scope IN (${members}) AND period IN (?, ?, ?)
            UNION ALL
            SELECT substr(recorded_at, 1, span.length), COALESCE(CAST(round(cost_usd * 1000000000) AS BIGINT), 0),
              input_tokens + output_tokens
            FROM usage_record CROSS JOIN (SELECT 13 AS length UNION ALL SELECT 10 UNION ALL SELECT 7) AS span
            WHERE id > (SELECT to_id FROM usage_fold WHERE id = 1) AND agent_id IN (${members})
          ) AS spent
        ) AS used CROSS JOIN (
          SELECT COALESCE(sum(nano), 0) AS nano, COALESCE(sum(tokens), 0) AS tokens
          FROM usage_claim WHERE agent_id IN (${members})
        ) AS held
        WHERE of_hour + held.nano <= CAST(? AS BIGINT) AND of_day + held.nano <= CAST(? AS BIGINT)
          AND of_month + held.nano <= CAST(? AS BIGINT) AND used.tokens + held.tokens <= CAST(? AS BIGINT))`,
      values: [
        id,
        hour,
        day,
        month,
        hour,
        ids,
        hour,
        day,
        month,
        ids,
        ids,
        limits.hourNano ?? NONE,
        limits.dayNano ?? NONE,
        limits.monthNano ?? NONE,
        limits.hourTokens ?? NONE,
      ],
    }
  }
  ranking(at: string): Promise<SpendRank[]> {
    const [day, month] = [at.slice(0, 10), at.slice(0, 7)]
    return this.#db
      .all`SELECT scope AS "agentId", COALESCE(sum(CASE WHEN period = '' THEN nano ELSE 0 END), 0) AS "totalNano",
        COALESCE(sum(CASE WHEN period = ${day} THEN nano ELSE 0 END), 0) AS "todayNano",
        COALESCE(sum(CASE WHEN period = ${month} THEN nano ELSE 0 END), 0) AS "monthNano",
          COALESCE(sum(CASE WHEN period = '' THEN calls ELSE 0 END), 0) AS calls,
        COALESCE(sum(CASE WHEN period = '' THEN unpriced ELSE 0 END), 0) AS unpriced
      FROM (
        SELECT scope, period, nano, calls, unpriced FROM usage_tally WHERE scope <> ''
          AND period IN ('', ${day}, ${month})
        UNION ALL
        SELECT agent_id, substr(recorded_at, 1, span.length),
          COALESCE(CAST(round(cost_usd * 1000000000) AS BIGINT), 0), 1, CASE WHEN cost_usd IS NULL THEN 1 ELSE 0 END
        FROM usage_record CROSS JOIN (SELECT 10 AS length UNION ALL SELECT 7 UNION ALL SELECT 0) AS span
          WHERE id > (SELECT to_id FROM usage_fold WHERE id = 1)
      ) AS used GROUP BY scope ORDER BY "totalNano" DESC, scope`
  }
  /** All that an agent ever spent, in billionths of a dollar. */
  async total(agentId: string): Promise<number> {
    const row = await this.#db.one<{ nano: number }>`SELECT COALESCE(sum(nano), 0) AS nano FROM (
        SELECT nano FROM usage_tally WHERE scope = ${agentId} AND period = ''
        UNION ALL
        SELECT COALESCE(CAST(round(cost_usd * 1000000000) AS BIGINT), 0) FROM usage_record
          WHERE id > (SELECT to_id FROM usage_fold WHERE id = 1) AND agent_id = ${agentId}
      ) AS used`
    return row?.nano ?? 0
  }
}
