import * as v from 'valibot'
import { jsonColumn, nullableColumn, numberColumn } from 'svc/internal'
import { DeliveryTarget } from '../result-delivery/contract.ts'
import { LABELS } from '../sessions/contract.ts'
import type { Label } from '../sessions/contract.ts'
import { parsePattern } from './events/pattern.ts'
import type { Pattern } from './events/pattern.ts'
import { HOLD_REASONS } from './reasons.ts'
import type { HoldReason } from './reasons.ts'

/** Times are milliseconds since 1970. */
export interface Trigger {
  readonly id: string
  readonly agentId: string
  /** Who is asked instead of the agent. */
  readonly targetAgentId: string | undefined
  readonly pattern: Pattern
  readonly promptTemplate: string
  readonly enabled: boolean
  readonly fireCount: number
  /** 0: no limit. */
  readonly maxFires: number
  /** What the configuration says when absent. */
  readonly cooldownSecs: number | undefined
  /** What the agent's manifest says when absent. */
  readonly sessionMode: 'new' | 'persistent' | undefined
  /** Runs instead of a turn, with the prompt as its input. */
  readonly workflowId: string | undefined
  readonly delivery: readonly DeliveryTarget[]
  /** The entry of the audit trail after which events count. */
  readonly since: number
  /** Why it is disabled. */
  readonly reason: string | undefined
  /** The agent that made it. */
  readonly createdBy: string | undefined
  /** The agents for which its turns work: that one, and those for which it worked. */
  readonly onBehalf: readonly string[]
  /** Where its words come from. */
  readonly labels: readonly Label[]
  /** Daemons that the request for it came through: its turns came through as many. */
  readonly hops: number
  readonly lastFired: number | undefined
  readonly createdAt: number
  readonly updatedAt: number
}
export const receiverOf = ({ agentId, targetAgentId }: Trigger): string => targetAgentId ?? agentId

/** `open`: it waits or runs. */
export type FiringState = 'open' | 'done' | 'failed' | 'held_back' | 'cancelled'

/** One event that a trigger matched, and what came of it. */
export interface Firing {
  readonly id: string
  readonly triggerId: string
  readonly eventId: string
  readonly position: number
  readonly eventKind: string
  readonly eventText: string
  readonly labels: readonly Label[]
  readonly agentId: string
  readonly turnId: string
  readonly depth: number
  readonly state: FiringState
  readonly reason: HoldReason | undefined
  readonly detail: string | undefined
  readonly result: string | undefined
  readonly error: string | undefined
  readonly eventAt: number
  readonly createdAt: number
  readonly endedAt: number | undefined
}

const text = nullableColumn(v.string())
const labels = jsonColumn(v.array(v.picklist(LABELS)))
const pattern = v.pipe(
  jsonColumn(v.unknown()),
  v.transform((value): Pattern => parsePattern(value)),
)

export const TriggerRow = v.pipe(
  v.object({
    id: v.string(),
    agent_id: v.string(),
    target_agent_id: text,
    pattern,
    prompt_template: v.string(),
    enabled: numberColumn,
    fire_count: numberColumn,
    max_fires: numberColumn,
    cooldown_secs: nullableColumn(numberColumn),
    session_mode: nullableColumn(v.picklist(['new', 'persistent'])),
    workflow_id: text,
    delivery: jsonColumn(v.array(DeliveryTarget)),
    since: numberColumn,
    reason: text,
    created_by: text,
    on_behalf: nullableColumn(jsonColumn(v.array(v.string()))),
    labels,
    hops: numberColumn,
    last_fired: nullableColumn(numberColumn),
    created_at: numberColumn,
    updated_at: numberColumn,
  }),
  v.transform((row): Trigger => ({
    id: row.id,
    agentId: row.agent_id,
    targetAgentId: row.target_agent_id,
    pattern: row.pattern,
    promptTemplate: row.prompt_template,
    enabled: row.enabled === 1,
    fireCount: row.fire_count,
    maxFires: row.max_fires,
    cooldownSecs: row.cooldown_secs,
    sessionMode: row.session_mode,
    workflowId: row.workflow_id,
    delivery: row.delivery,
    since: row.since,
    reason: row.reason,
    createdBy: row.created_by,
    onBehalf: row.on_behalf ?? (row.created_by === undefined ? [] : [row.created_by]),
    labels: row.labels,
    hops: row.hops,
    lastFired: row.last_fired,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  })),
)

export const FiringRow = v.pipe(
  v.object({
    id: v.string(),
    trigger_id: v.string(),
    event_id: v.string(),
    position: numberColumn,
    event_kind: v.string(),
    event_text: v.string(),
    labels,
    agent_id: v.string(),
    turn_id: v.string(),
    depth: numberColumn,
    state: v.picklist(['open', 'done', 'failed', 'held_back', 'cancelled']),
    reason: nullableColumn(v.picklist(HOLD_REASONS)),
    detail: text,
    result: text,
    error: text,
    event_at: numberColumn,
    created_at: numberColumn,
    ended_at: nullableColumn(numberColumn),
  }),
  v.transform((row): Firing => ({
    id: row.id,
    triggerId: row.trigger_id,
    eventId: row.event_id,
    position: row.position,
    eventKind: row.event_kind,
    eventText: row.event_text,
    labels: row.labels,
    agentId: row.agent_id,
    turnId: row.turn_id,
    depth: row.depth,
    state: row.state,
    reason: row.reason,
    detail: row.detail,
    result: row.result,
    error: row.error,
    eventAt: row.event_at,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  })),
)
export const Count = v.object({ count: numberColumn })
export const Cursor = v.object({ position: numberColumn, generation: numberColumn })
/** The firing that led to an event. */
export interface Cause {
  readonly triggerId: string
  readonly depth: number
}
export const CauseRow = v.pipe(
  v.object({ trigger_id: v.string(), depth: numberColumn }),
  v.transform(({ trigger_id: triggerId, depth }): Cause => ({ triggerId, depth })),
)
export const EventAt = v.object({ event_at: numberColumn })
