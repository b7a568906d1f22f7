/** What may have become of a task. */
export const STATUSES = ['pending', 'in_progress', 'completed', 'failed', 'cancelled'] as const
export type Status = (typeof STATUSES)[number]
