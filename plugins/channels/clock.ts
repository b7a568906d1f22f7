export { toIso, wallClock as systemClock } from 'svc/internal'
export type { Clock } from 'svc/internal'
