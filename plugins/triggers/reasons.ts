/** Why a trigger that matched did not fire, or what it fired for was not done. */
export const HOLD_REASONS = [
  'cooldown',
  'chain_depth',
  'too_many_triggers',
  'queue_full',
  'agent_not_running',
  'agent_removed',
  'quiet_hours',
  'disabled',
] as const
export type HoldReason = (typeof HOLD_REASONS)[number]
