/** The lane of the queue that slots wait in. */
export const LANE = 'schedule'
