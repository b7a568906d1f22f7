/** Why a slot did not run. */
export const SKIP_REASONS = [
  'missed',
  'superseded',
  'still_running',
  'agent_not_running',
  'agent_removed',
  'quiet_hours',
  'disabled',
  'cancelled',
] as const
export type SkipReason = (typeof SKIP_REASONS)[number]
