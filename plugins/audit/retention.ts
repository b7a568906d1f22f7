import { ChainWalk, ORIGIN } from './chain.ts'
import type { AuditLog } from './service.ts'
import type { AuditStore } from './store.ts'
import { BLOCK } from './tree/merkle.ts'
import type { Checkpoints } from './tree/checkpoints.ts'
import { originText } from './tree/store.ts'
import type { Audit } from './contract.ts'
import { WriterWalk } from './writers/walk.ts'
import type { Writers } from './writers/writers.ts'

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
  /** Where other daemons may write, and drop, too. */
  readonly writers?: Pick<Writers, 'forget'>
}

/**
 * Drops entries older than this time, in whole blocks with a signed checkpoint, so that their roots still prove them.
 * Each step moves the origin, records that in the trail itself, and drops nothing that does not verify. Returns the
 * number of dropped entries.
 */
export async function trim(deps: TrimDeps, before: string): Promise<number> {
  const { trail, checkpoints, audit, log, signal, writers } = deps
  let dropped = 0
  for (;;) {
    if (signal.aborted) return dropped
    const origin = (await checkpoints.store.origin()) ?? { entry_id: 0, hash: ORIGIN }
    const end = origin.entry_id + BLOCK
    const [last, newest] = await Promise.all([trail.find(end), checkpoints.store.newest()])
    if (!last || last.timestamp >= before || !newest || newest.size < end) return dropped
    const walk = new ChainWalk().from(origin.entry_id, origin.hash)
    const chains = new WriterWalk([], origin.entry_id === 0)
    const block = await trail.after(origin.entry_id, BLOCK)
    // Clocks of several daemons differ.
    if (block.some(({ timestamp }) => timestamp >= before)) return dropped
    for (const link of block) {
      walk.add(link)
      chains.add(link)
    }
    const invalid = walk.firstInvalid ?? chains.problem()?.id
    if (invalid !== undefined || walk.last.id !== end) {
      log.error('old audit entries are kept: they do not verify, and dropping them would hide it', {
        id: invalid ?? end,
      })
      return dropped
    }
    const moved = { entry_id: end, hash: last.hash }
    try {
      await checkpoints.store.commit([
        checkpoints.store.moveOrigin(
          { ...moved, ...(await checkpoints.signer.sign(originText(moved))) },
          origin.entry_id,
        ),
        ...(writers ? [...chains.chains].map(([writer, { seq }]) => writers.forget(writer, seq)) : []),
        audit.entry({
          event: 'retention_trimmed',
          details:
            `entries ${origin.entry_id + 1} to ${end} are older than they are kept and were dropped; the chain ` +
            `begins behind ${last.hash}`,
        }),
        // After the entry, which follows the newest one.
        trail.drop(end),
      ])
    } catch (error) {
      // Another daemon was faster.
      if (((await checkpoints.store.origin())?.entry_id ?? 0) > origin.entry_id) continue
      throw error
    }
    dropped += BLOCK
    await pause()
  }
}
