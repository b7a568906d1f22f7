import { QUIET_HOURS } from '../../agents/contract.ts'
import type { EntryPoint } from '../../journal/contract.ts'

/** Entry points through which nobody speaks: the turn was started by a clock or an event. */
const automated: ReadonlySet<EntryPoint> = new Set<EntryPoint>(['schedule', 'trigger', 'hook'])
export const isAutomated = (entryPoint: EntryPoint): boolean => automated.has(entryPoint)

/**
 * Seconds until the quiet hours end; 0 outside of them. `hours` is `HH:MM-HH:MM` in the daemon's local time and may
 * span midnight. Any other form means no quiet hours, and loading the manifest warns about it.
 */
export function quietFor(hours: string | undefined, now: Date): number {
  const [, fromHour, fromMinute, toHour, toMinute] = QUIET_HOURS.exec(hours ?? '') ?? []
  if (fromHour === undefined) return 0
  const from = Number(fromHour) * 60 + Number(fromMinute)
  const to = Number(toHour) * 60 + Number(toMinute)
  if (from > 1440 || to > 1440 || from === to) return 0
  const at = now.getHours() * 60 + now.getMinutes()
  const quiet = from < to ? at >= from && at < to : at >= from || at < to
  return quiet ? ((to - at + 1440) % 1440 || 1440) * 60 - now.getSeconds() : 0
}
