import * as v from 'valibot'
import type { Broadcast } from 'svc/internal'
import type { RevokedGrants } from './revoked.ts'
import type { ApprovalService } from './service.ts'

const Decided = v.object({ id: v.string() })

/** A decision at another daemon on the database ends the wait of a call here. */
export function hear(
  broadcast: Broadcast,
  service: ApprovalService,
  {
    own,
    failed,
    revoked,
  }: {
    readonly own: (label: string, dispose: () => void) => void
    readonly failed: (error: unknown) => void
    readonly revoked: () => Promise<Pick<RevokedGrants, 'put'>>
  },
): void {
  const revocations = broadcast.on('approvals.revoked', {
    heard(data) {
      const told = v.safeParse(Decided, data)
      if (!told.success) return
      const entry = { revoked_at: new Date().toISOString() }
      revoked()
        .then((grants) => grants.put(told.output.id, entry))
        .catch(failed)
    },
    // The rows say what was revoked meanwhile.
    missed: () => undefined,
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
}
