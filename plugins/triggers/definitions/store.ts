import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { renderPattern } from '../events/pattern.ts'
import { Count, Cursor, TriggerRow } from '../trigger.ts'
import type { Trigger } from '../trigger.ts'

export interface TriggerLimits {
  readonly max_triggers: number
  readonly max_triggers_per_agent: number
}
export type Cursor = v.InferOutput<typeof Cursor>

/** SQL of the triggers, and of how far the audit trail was read for them. */
export class TriggerStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof TriggerRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'triggers_trigger', key: ['id'], schema: TriggerRow, log })
  }

  /** Over a limit the template becomes NULL, which the column refuses, so that the batch fails as a whole. */
  insert(trigger: Trigger, { max_triggers: max, max_triggers_per_agent: maxOfAgent }: TriggerLimits): Statement {
    return {
      ...this.#db.sql`INSERT INTO triggers_trigger (id, agent_id, target_agent_id, pattern, prompt_template, enabled,
        fire_count, max_fires, cooldown_secs, session_mode, workflow_id, delivery, since, created_by, on_behalf, labels,
        hops, created_at, updated_at)
      VALUES (${trigger.id}, ${trigger.agentId}, ${trigger.targetAgentId ?? null},
        ${JSON.stringify(renderPattern(trigger.pattern))},
        CASE WHEN (SELECT COUNT(*) FROM triggers_trigger) < ${max}
          AND (SELECT COUNT(*) FROM triggers_trigger WHERE agent_id = ${trigger.agentId}) < ${maxOfAgent}
        THEN ${trigger.promptTemplate} END,
        ${Number(trigger.enabled)}, 0, ${trigger.maxFires}, ${trigger.cooldownSecs ?? null},
        ${trigger.sessionMode ?? null}, ${trigger.workflowId ?? null}, ${JSON.stringify(trigger.delivery)},
        ${trigger.since}, ${trigger.createdBy ?? null}, ${JSON.stringify(trigger.onBehalf)},
        ${JSON.stringify(trigger.labels)}, ${trigger.hops}, ${trigger.createdAt},
        ${trigger.updatedAt})`,
      exclusive: 'triggers_trigger',
    }
  }
  /** Leaves what firing changes: count and time. */
  update(trigger: Trigger): Statement {
    return this.#db.sql`UPDATE triggers_trigger SET agent_id = ${trigger.agentId},
        target_agent_id = ${trigger.targetAgentId ?? null}, pattern = ${JSON.stringify(renderPattern(trigger.pattern))},
        prompt_template = ${trigger.promptTemplate},
        enabled = CASE WHEN ${trigger.maxFires} > 0 AND fire_count >= ${trigger.maxFires} THEN 0
          ELSE CAST(${Number(trigger.enabled)} AS INTEGER) END,
        max_fires = ${trigger.maxFires}, cooldown_secs = ${trigger.cooldownSecs ?? null},
        session_mode = ${trigger.sessionMode ?? null}, workflow_id = ${trigger.workflowId ?? null},
        delivery = ${JSON.stringify(trigger.delivery)}, since = ${trigger.since}, reason = ${trigger.reason ?? null},
        updated_at = ${trigger.updatedAt}
      WHERE id = ${trigger.id}`
  }
  /** It fired so many times more; the last one allowed disables it. */
  fired(id: string, times: number, at: number, reason: string): Statement {
    return this.#db.sql`UPDATE triggers_trigger SET
        enabled = CASE WHEN max_fires > 0 AND fire_count + ${times} >= max_fires THEN 0 ELSE enabled END,
        reason = CASE WHEN max_fires > 0 AND fire_count + ${times} >= max_fires THEN ${reason} ELSE reason END,
        fire_count = fire_count + ${times}, last_fired = ${at}
      WHERE id = ${id}`
  }
  disable(id: string, reason: string, at: number): Statement {
    return this.#db.sql`UPDATE triggers_trigger SET enabled = 0, reason = ${reason}, updated_at = ${at}
      WHERE id = ${id} AND enabled = 1`
  }
  /** For the batch that removes an agent. */
  endOf(agentId: string, now: number): readonly Statement[] {
    return [
      this.touch(),
      this.#db.sql`UPDATE triggers_trigger SET enabled = 0, reason = 'its agent was removed', updated_at = ${now}
        WHERE agent_id = ${agentId} OR target_agent_id = ${agentId}`,
    ]
  }
  remove(id: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM triggers_cooldown WHERE trigger_id = ${id}`,
      this.#db.sql`DELETE FROM triggers_firing WHERE trigger_id = ${id}`,
      this.#db.sql`DELETE FROM triggers_trigger WHERE id = ${id}`,
    ]
  }

  async find(id: string): Promise<Trigger | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM triggers_trigger WHERE id = ${id}`)
  }
  /** Oldest first; those of one agent, also when it is the target. */
  async list(agentId: string | undefined, limit: number, offset: number): Promise<readonly Trigger[]> {
    const agent = agentId ?? null
    return this.#rows.all(
      await this.#db.all`SELECT * FROM triggers_trigger
        WHERE CAST(${agent} AS TEXT) IS NULL OR agent_id = ${agent} OR target_agent_id = ${agent}
        ORDER BY created_at, id LIMIT ${limit} OFFSET ${offset}`,
    )
  }
  /** Those that are for an agent, or that it made; oldest first. */
  async ofAgent(agentId: string, limit: number): Promise<readonly Trigger[]> {
    return this.#rows.all(
      await this.#db.all`SELECT * FROM triggers_trigger
        WHERE agent_id = ${agentId} OR target_agent_id = ${agentId} OR created_by = ${agentId}
        ORDER BY created_at, id LIMIT ${limit}`,
    )
  }
  /** Oldest first. */
  async enabled(): Promise<readonly Trigger[]> {
    return this.#rows.all(await this.#db.all`SELECT * FROM triggers_trigger WHERE enabled = 1 ORDER BY created_at, id`)
  }
  async count(agentId?: string): Promise<number> {
    const row =
      agentId === undefined
        ? await this.#db.one`SELECT COUNT(*) AS count FROM triggers_trigger`
        : await this.#db.one`SELECT COUNT(*) AS count FROM triggers_trigger WHERE agent_id = ${agentId}`
    return v.parse(Count, row).count
  }

  async cursor(): Promise<Cursor> {
    return v.parse(Cursor, await this.#db.one`SELECT position, generation FROM triggers_cursor WHERE id = 1`)
  }
  /** Makes its batch fail when another daemon has read on, or a trigger was changed since the cursor was read. */
  advance({ position, generation }: Cursor, to: number): Statement {
    return this.#db.sql`UPDATE triggers_cursor SET
        position = CASE WHEN position = ${position} AND generation = ${generation} THEN CAST(${to} AS BIGINT) END
      WHERE id = 1`
  }
  /** First in every batch that changes a trigger: who dispatches meanwhile reads the triggers again. */
  touch(): Statement {
    return this.#db.sql`UPDATE triggers_cursor SET generation = generation + 1 WHERE id = 1`
  }
  /** The same for a change that builds on what was read: its batch fails when a trigger was changed since. */
  touchFrom(generation: number): Statement {
    return this.#db.sql`UPDATE triggers_cursor SET
        generation = CASE WHEN generation = ${generation} THEN generation + 1 END
      WHERE id = 1`
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
