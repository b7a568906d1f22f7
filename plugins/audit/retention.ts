import { ChainWalk, ORIGIN } from './chain.ts'
import type { AuditLog } from './service.ts'
import type { AuditStore } from './store.ts'
import { BLOCK } from './tree/merkle.ts'
import type { Checkpoints } from './tree/checkpoints.ts'
import { originText } from './tree/store.ts'
import type { Audit } from './contract.ts'

const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve)
  })

export interface TrimDeps {
  readonly trail: AuditStore
  readonly checkpoints: Checkpoints
  readonly audit: Pick<Audit, 'entry'>
  readonly log: AuditLog
  readonly signal: AbortSignal
}

/**
 * Drops entries older than this time, in whole blocks with a signed checkpoint, so that their roots still prove them.
 * Each step moves the origin, records that in the trail itself, and drops nothing that does not verify. Returns the
 * number of dropped entries.
 */
export async function trim({ trail, checkpoints, audit, log, signal }: TrimDeps, before: string): Promise<number> {
  let dropped = 0
  for (;;) {
    if (signal.aborted) return dropped
    const origin = (await checkpoints.store.origin()) ?? { entry_id: 0, hash: ORIGIN }
    const end = origin.entry_id + BLOCK
    const [last, newest] = await Promise.all([trail.find(end), checkpoints.store.newest()])
    if (!last || last.timestamp >= before || !newest || newest.size < end) return dropped
    const walk = new ChainWalk().from(origin.entry_id, origin.hash)
    for (const link of await trail.after(origin.entry_id, BLOCK)) walk.add(link)
    if (walk.firstInvalid !== undefined || walk.last.id !== end) {
      log.error('old audit entries are kept: they do not verify, and dropping them would hide it', {
        id: walk.firstInvalid ?? end,
      })
      return dropped
    }
    const moved = { entry_id: end, hash: last.hash }
    await checkpoints.store.commit([
      trail.drop(end),
      checkpoints.store.moveOrigin({ ...moved, ...(await checkpoints.signer.sign(originText(moved))) }),
      audit.entry({
        event: 'retention_trimmed',
        details:
          `entries ${origin.entry_id + 1} to ${end} are older than they are kept and were dropped; the chain ` +
          `begins behind ${last.hash}`,
      }),
    ])
    dropped += BLOCK
    await pause()
  }
}
