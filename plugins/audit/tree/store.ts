import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'

const whole = v.pipe(v.union([v.number(), v.string()]), v.transform(Number), v.integer(), v.minValue(0))
// Any text: rows that were tampered with are for the walk to find, and must not fail to parse.
const Block = v.object({ position: whole, root: v.string() })
const CheckpointRow = v.object({
  size: whole,
  root: v.string(),
  timestamp: v.string(),
  key_id: v.string(),
  signature: v.string(),
})
const OriginRow = v.object({ entry_id: whole, hash: v.string(), key_id: v.string(), signature: v.string() })

/** The tree over the first `size` entries had this root; signed. */
export type Checkpoint = v.InferOutput<typeof CheckpointRow>
/** The chain begins behind this entry: it and those before it were dropped. Signed. */
export type Origin = v.InferOutput<typeof OriginRow>

export const checkpointText = ({ size, root, timestamp }: Pick<Checkpoint, 'size' | 'root' | 'timestamp'>): string =>
  `svc-audit-checkpoint-1:${size}:${root}:${timestamp}`
export const originText = ({ entry_id, hash }: Pick<Origin, 'entry_id' | 'hash'>): string =>
  `svc-audit-origin-1:${entry_id}:${hash}`

/** The stored part of the tree beside its leaves. */
export class TreeStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** Roots of whole blocks by their position, from `from` on. */
  async blocks(from = 0): Promise<ReadonlyMap<number, Buffer>> {
    const rows = v.parse(
      v.array(Block),
      await this.#db.all`SELECT position, root FROM audit_block WHERE position >= ${from} ORDER BY position`,
    )
    return new Map(rows.map(({ position, root }) => [position, Buffer.from(root, 'hex')]))
  }
  /** Newest first. */
  async checkpoints(limit: number): Promise<readonly Checkpoint[]> {
    return v.parse(
      v.array(CheckpointRow),
      await this.#db
        .all`SELECT size, root, timestamp, key_id, signature FROM audit_checkpoint ORDER BY size DESC LIMIT ${limit}`,
    )
  }
  async newest(): Promise<Checkpoint | undefined> {
    return (await this.checkpoints(1))[0]
  }
  async origin(): Promise<Origin | undefined> {
    return v.parse(
      v.optional(OriginRow),
      await this.#db.one`SELECT entry_id, hash, key_id, signature FROM audit_origin WHERE id = 1`,
    )
  }

  block(position: number, root: Buffer): Statement {
    return this.#db.sql`INSERT INTO audit_block (position, root) VALUES (${position}, ${root.toString('hex')})
        ON CONFLICT (position) DO NOTHING`
  }
  checkpoint(row: Checkpoint): Statement {
    return this.#db.sql`INSERT INTO audit_checkpoint (size, root, timestamp, key_id, signature)
        VALUES (${row.size}, ${row.root}, ${row.timestamp}, ${row.key_id}, ${row.signature})
      ON CONFLICT (size) DO NOTHING`
  }
  /** Keeps the newest ones. */
  thin(keep: number): Statement {
    return this.#db
      .sql`DELETE FROM audit_checkpoint WHERE size < (SELECT c.size FROM audit_checkpoint c ORDER BY c.size DESC
        LIMIT 1 OFFSET ${keep - 1})`
  }
  /** `from`: where it was. Makes its batch fail when another daemon has moved it since. */
  moveOrigin(row: Origin, from: number): Statement {
    return this.#db.sql`INSERT INTO audit_origin (id, entry_id, hash, key_id, signature)
        VALUES (1, ${row.entry_id}, ${row.hash}, ${row.key_id}, ${row.signature})
      ON CONFLICT (id) DO UPDATE
      SET entry_id = CASE WHEN audit_origin.entry_id = ${from} THEN excluded.entry_id END, hash = excluded.hash, key_id = excluded.key_id, signature = excluded.signature`
  }
  commit(statements: readonly Statement[]): Promise<unknown> {
    return this.#db.batch(statements)
  }
}
