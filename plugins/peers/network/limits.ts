import { createLimiter, monotonicClock } from 'svc/internal'
import type { Limiter } from 'svc/internal'
import type { Network as Settings } from '../config.ts'
import { HalfOpen } from '../half-open.ts'
import { PendingRequests } from './pending.ts'

const MINUTE_MS = 60_000
const MAX_KEYS = 10_000

/** What nodes and addresses may use, whatever links they have. */
export interface Limits {
  readonly halfOpen: HalfOpen
  /** By address. */
  readonly connections: Limiter
  /** By node, as the others. */
  readonly messages: Limiter
  readonly frames: Limiter
  readonly bytes: Limiter
  readonly pending: PendingRequests
}

export function createLimits(settings: Settings): Limits {
  const { now } = monotonicClock
  const perMinute = (tokens: number): Limiter => createLimiter({ tokens, windowMs: MINUTE_MS, maxKeys: MAX_KEYS, now })
  return {
    halfOpen: new HalfOpen(now, settings.max_half_open, settings.max_half_open_per_address),
    connections: perMinute(settings.connections_per_minute),
    messages: perMinute(settings.messages_per_minute),
    frames: perMinute(settings.frames_per_minute),
    bytes: perMinute(settings.bytes_per_minute),
    pending: new PendingRequests(settings.max_pending),
  }
}
