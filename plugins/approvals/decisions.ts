import * as v from 'valibot'
import type { Broadcast } from 'svc/internal'
import type { Logger, PluginDatabase } from 'svc/sdk'
import type { ApprovalProofs } from './proof.ts'
import type { RevokedGrants } from './revoked/store.ts'
import type { ApprovalService } from './service.ts'

const Decided = v.object({ id: v.string() })

/**
 * A decision at another daemon on the database ends the wait of a call here. What was revoked while this one did not run
 * is remembered when it settles.
 */
export async function hear(
  broadcast: Broadcast,
  service: ApprovalService,
  {
    own,
    failed,
    revoked,
    db,
    log,
    proofs,
  }: {
    readonly own: (label: string, dispose: () => void) => void
    readonly failed: (error: unknown) => void
    readonly revoked: () => Promise<Pick<RevokedGrants, 'put' | 'catchUp'>>
    readonly db: PluginDatabase
    readonly log: Pick<Logger, 'error'>
    readonly proofs: () => Promise<ApprovalProofs>
  },
): Promise<void> {
  const catchUp = async (): Promise<void> => (await revoked()).catchUp({ db, log, proofs: await proofs() })
  const revocations = broadcast.on('approvals.revoked', {
    heard(data) {
      const told = v.safeParse(Decided, data)
      if (!told.success) return
      const entry = { revoked_at: new Date().toISOString() }
      revoked()
        .then((grants) => grants.put(told.output.id, entry))
        .catch(failed)
    },
    missed: () => void catchUp().catch(failed),
  })
  own('standing approvals revoked elsewhere', () => revocations[Symbol.dispose]())
  const subscription = broadcast.on('approvals.decided', {
    heard(data) {
      const told = v.safeParse(Decided, data)
      if (told.success) service.decidedElsewhere(told.output.id).catch(failed)
    },
    missed: () => void service.lookAgain().catch(failed),
  })
  own('decisions of other daemons', () => subscription[Symbol.dispose]())
  await catchUp()
}
