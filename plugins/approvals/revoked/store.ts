import * as v from 'valibot'
import { HomeRecord, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase } from 'svc/sdk'
import type { ApprovalProofs } from '../proof.ts'
import { GrantRow } from '../schema.ts'

const RevokedGrant = v.object({
  /** ISO 8601 UTC. */
  revoked_at: v.string(),
})
export interface CatchUpDeps {
  readonly db: PluginDatabase
  readonly log: Pick<Logger, 'error'>
  readonly proofs: Pick<ApprovalProofs, 'holdsGrant'>
}
/** The newest that are remembered. */
const MAX_KEPT = 10_000

/** Standing approvals that this home knows to be revoked, by id: the row of one that is put back permits nothing here. */
export class RevokedGrants extends HomeRecord<typeof RevokedGrant> {
  constructor(home: string) {
    super(home, 'revoked-approvals.json', RevokedGrant, (entries) => entries.slice(-MAX_KEPT))
  }

  /**
   * Remembers what the rows say that other daemons revoked while this home could not hear of it. A row that no daemon
   * wrote says nothing.
   */
  async catchUp({ db, log, proofs }: CatchUpDeps): Promise<void> {
    const known = await this.all()
    const reader = new RowReader({ table: 'approvals_grant', key: ['id'], schema: GrantRow, log })
    const rows = reader
      .all(await db.all`SELECT * FROM approvals_grant WHERE revoked_at IS NOT NULL ORDER BY revoked_at, id`)
      .filter(({ id }) => !known.has(id))
    const held = await Promise.all(rows.map((row) => proofs.holdsGrant(row)))
    const revoked = rows.filter((_, at) => held[at])
    if (revoked.length > 0) await this.putAll(revoked.map(({ id, revoked_at: at }) => [id, { revoked_at: at ?? '' }]))
  }
}
