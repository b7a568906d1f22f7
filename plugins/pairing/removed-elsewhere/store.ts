import * as v from 'valibot'
import type { RowProofs } from 'svc/internal'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { RemovedDevices } from '../removed.ts'

const RemovedRow = v.object({ id: v.string(), removed_at: v.string(), proof: v.string() })

export interface RemovedElsewhereDeps {
  readonly db: PluginDatabase
  readonly proofs: Pick<RowProofs, 'of' | 'holds'>
  readonly removed: Pick<RemovedDevices, 'all' | 'putAll'>
}

/** Where daemons share a database: rows by which one that did not run when a device was removed learns of it. */
export class RemovedElsewhere {
  readonly #deps: RemovedElsewhereDeps
  constructor(deps: RemovedElsewhereDeps) {
    this.#deps = deps
  }

  /** At the start, once this home hears of what others remove. A row counts with a proof only. */
  async catchUp(): Promise<void> {
    const { db, proofs, removed } = this.#deps
    const known = await removed.all()
    const all = await db.all`SELECT id, removed_at, proof FROM pairing_removed ORDER BY removed_at, id`
    const rows = v.parse(v.array(RemovedRow), all).filter(({ id }) => !known.has(id))
    const proven = await Promise.all(rows.map((row) => proofs.holds(provenFields(row.id), row.proof)))
    const added = rows.filter((_, at) => proven[at])
    if (added.length > 0) await removed.putAll(added.map(({ id, removed_at: at }) => [id, { removed_at: at }]))
  }
  /** For the batch that removes the device. */
  async note(id: string, at: string): Promise<Statement> {
    const { db, proofs } = this.#deps
    return db.sql`INSERT INTO pairing_removed (id, removed_at, proof)
      VALUES (${id}, ${at}, ${await proofs.of(provenFields(id))}) ON CONFLICT (id) DO NOTHING`
  }
}

const provenFields = (id: string): readonly unknown[] => ['removed', id]
