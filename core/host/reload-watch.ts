import type { CallCounts, Scope } from '../scope/scope.ts'
import { messageOf } from '../errors/message.ts'

export interface WatchSettings {
  /** How long a reloaded plugin is watched; 0: not at all. */
  readonly watchMs: number
  readonly minFailures: number
  readonly minPercent: number
}

/**
 * Watches the calls of new code for a while. Calls `onFailing` once, with what failed, if many of them fail and more
 * than twice as many as before. Ends by itself: it looks at the clock only when a call fails.
 */
export function watchReload(
  scope: Scope,
  before: CallCounts,
  { watchMs, minFailures, minPercent }: WatchSettings,
  onFailing: (reason: string) => void,
): void {
  if (watchMs === 0) return
  const until = performance.now() + watchMs
  const usual = percentOf(before)
  scope.onFailure((error) => {
    if (performance.now() > until) return scope.onFailure(undefined)
    const { calls, failures } = scope.counts
    const percent = percentOf({ calls, failures })
    if (failures < minFailures || percent < minPercent || percent <= 2 * usual) return
    scope.onFailure(undefined)
    const last = messageOf(error)
    onFailing(`${failures} of ${calls} calls failed, the last one with: ${last}`)
  })
}

function percentOf({ calls, failures }: CallCounts): number {
  return calls === 0 ? 0 : (failures / calls) * 100
}
