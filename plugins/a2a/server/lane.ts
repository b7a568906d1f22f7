/** The lane of the queue. */
export const PUSH_LANE = 'a2a-push'
