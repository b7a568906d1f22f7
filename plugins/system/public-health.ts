import type { Daemon } from 'svc/internal'

/**
 * All that anyone may know of the health (Interface 4.5): named one by one, so that whatever is added to it stays
 * inside.
 */
export function publicHealth({ status, uptimeSecs, panicCount, restartCount }: ReturnType<Daemon['health']>) {
  return { status, uptime_seconds: Math.floor(uptimeSecs), panic_count: panicCount, restart_count: restartCount }
}
