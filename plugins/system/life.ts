import type { Daemon } from 'svc/sdk'
import type { Storage } from 'unstorage'
import type { Audit } from '../audit/contract.ts'

const marker = 'started-at'

/** Records the start once for each life of the daemon, however often this plugin is reloaded in it. */
export async function recordStart(daemon: Daemon, audit: Audit, storage: Storage): Promise<void> {
  if (await storage.getItem<string>(marker) === daemon.startedAt) return
  await audit.write({ event: 'daemon_started', details: `svc ${daemon.build.version} started` })
  await storage.setItem(marker, daemon.startedAt)
}

/** Records the end, when it is the end and not a reload. */
export async function recordStop(daemon: Daemon, audit: Audit): Promise<void> {
  if (daemon.stopping === undefined) return
  await audit.write({ event: 'daemon_stopped', details: `svc stopped: ${daemon.stopping}` })
}
