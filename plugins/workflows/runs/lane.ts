/** The lane of the queue. */
export const LANE = 'workflow'
