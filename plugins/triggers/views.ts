import { toIso } from 'svc/internal'
import { renderPattern } from './events/pattern.ts'
import type { Firing, Trigger } from './trigger.ts'

const at = (ms: number | undefined): string | null => (ms === undefined ? null : toIso(ms))

export function toTrigger(trigger: Trigger) {
  return {
    id: trigger.id,
    agent_id: trigger.agentId,
    target_agent_id: trigger.targetAgentId ?? null,
    pattern: renderPattern(trigger.pattern),
    prompt_template: trigger.promptTemplate,
    enabled: trigger.enabled,
    fire_count: trigger.fireCount,
    max_fires: trigger.maxFires,
    cooldown_secs: trigger.cooldownSecs ?? null,
    session_mode: trigger.sessionMode ?? null,
    workflow_id: trigger.workflowId ?? null,
    delivery_targets: [...trigger.delivery],
    reason: trigger.reason ?? null,
    created_by: trigger.createdBy ?? null,
    last_fired: at(trigger.lastFired),
    created_at: toIso(trigger.createdAt),
    updated_at: toIso(trigger.updatedAt),
  }
}
/** What changes by itself. */
export const MEASURED = ['fire_count', 'reason', 'last_fired', 'updated_at']

export function toFiring(firing: Firing) {
  return {
    id: firing.id,
    position: firing.position,
    event: firing.eventKind,
    event_id: firing.eventId,
    text: firing.eventText,
    labels: [...firing.labels],
    state: firing.state,
    reason: firing.reason ?? null,
    detail: firing.detail ?? null,
    depth: firing.depth,
    agent_id: firing.agentId,
    turn_id: firing.state === 'held_back' ? null : firing.turnId,
    result: firing.result ?? null,
    error: firing.error ?? null,
    event_at: toIso(firing.eventAt),
    created_at: toIso(firing.createdAt),
    ended_at: at(firing.endedAt),
  }
}
