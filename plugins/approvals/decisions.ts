import * as v from 'valibot'
import type { Broadcast } from 'svc/internal'
import type { ApprovalService } from './service.ts'

const Decided = v.object({ id: v.string() })

/** A decision at another daemon on the database ends the wait of a call here. */
export function hear(
  broadcast: Broadcast,
  service: ApprovalService,
  {
    own,
    failed,
  }: { readonly own: (label: string, dispose: () => void) => void; readonly failed: (error: unknown) => void },
): void {
  const subscription = broadcast.on('approvals.decided', {
    heard(data) {
      const told = v.safeParse(Decided, data)
      if (told.success) service.decidedElsewhere(told.output.id).catch(failed)
    },
    missed: () => void service.lookAgain().catch(failed),
  })
  own('decisions of other daemons', () => subscription[Symbol.dispose]())
}
