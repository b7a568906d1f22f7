import * as v from 'valibot'
import { HomeRecord } from 'svc/internal'

const RevokedGrant = v.object({
  /** ISO 8601 UTC. */
  revoked_at: v.string(),
})
/** The newest that are remembered. */
const MAX_KEPT = 10_000

/** Standing approvals that this home knows to be revoked, by id: the row of one that is put back permits nothing here. */
export class RevokedGrants extends HomeRecord<typeof RevokedGrant> {
  constructor(home: string) {
    super(home, 'revoked-approvals.json', RevokedGrant, (entries) => entries.slice(-MAX_KEPT))
  }
}
