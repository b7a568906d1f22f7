/** What may have become of a job. */
export const STATES = ['pending', 'running', 'done', 'dead', 'cancelled'] as const
