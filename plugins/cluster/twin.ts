import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { StartRefused } from 'svc/internal'
import type { Member } from './contract.ts'
import type { MemberRow } from './schema.ts'
import type { MemberStore } from './store.ts'

/** Has the id of the last run of a home. */
export const FILE = 'cluster-member'
const LOOK_MS = 250
/** The longest wait; a daemon with a lease of three times as long may beat later. */
const MAX_WAIT_MS = 20_000

export interface TwinDeps {
  readonly store: Pick<MemberStore, 'members'>
  readonly self: Member
  readonly homeDir: string
  /** Aborts when the plugin begins to unload. */
  readonly leaving: AbortSignal
}

/**
 * Throws `StartRefused` while a daemon is alive whose host name and home folder have the same names as those of this one:
 * each would take the other for an earlier run of itself. The row of an earlier run is known by its id, which the home
 * has, and costs no wait: the lock of the home says that the run is over. Of any other row it is waited whether it is
 * counted up.
 */
export async function refuseTwin({ store, self, homeDir, leaving }: TwinDeps): Promise<void> {
  const last = await readFile(join(homeDir, FILE), 'utf8').catch(() => undefined /* the first run of this home */)
  const rows = (await store.members()).filter((row) => row.home_id === self.homeId && row.id !== last)
  for (const row of rows)
    if (await isCountedUp(store, row, leaving))
      throw new StartRefused(
        `daemon "${row.name}" at ${row.address ?? 'an unknown address'} is on the same database and has the same host ` +
          `name (${self.hostName}) and the same home folder (${homeDir}): each would take the other for itself`,
        'give this one another host name, or another home with --home',
      )
}

/** For the next run. */
export function rememberRun(homeDir: string, id: string): Promise<void> {
  return writeFile(join(homeDir, FILE), id, { mode: 0o600 })
}

/** Waits until the row is counted up, which is `true`, or its lease is over. */
export async function isCountedUp(
  store: TwinDeps['store'],
  row: Pick<MemberRow, 'id' | 'beats' | 'lease_ms'>,
  leaving: Pick<AbortSignal, 'aborted'>,
): Promise<boolean> {
  const looks = Math.ceil(Math.min(row.lease_ms, MAX_WAIT_MS) / LOOK_MS)
  for (let look = 0; look < looks && !leaving.aborted; look++) {
    await delay(LOOK_MS)
    const now = (await store.members()).find(({ id }) => id === row.id)
    if (!now) return false
    if (now.beats !== row.beats) return true
  }
  return false
}
