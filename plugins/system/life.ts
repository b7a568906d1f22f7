import type { Daemon } from 'svc/internal'
import type { Audit } from '../audit/contract.ts'

/** Records the start. Once in each life of the daemon, because it listens once. */
export async function recordStart(daemon: Daemon, audit: Audit): Promise<void> {
  await audit.write({ event: 'daemon_started', details: `svc ${daemon.build.version} started` })
}

/** Records the end, when it is the end and not a reload. */
export async function recordStop(daemon: Daemon, audit: Audit): Promise<void> {
  if (daemon.stopping === undefined) return
  await audit.write({ event: 'daemon_stopped', details: `svc stopped: ${daemon.stopping}` })
}
