import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'

const whole = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number))
const PinRow = v.object({
  node_id: v.string(),
  public_key: v.string(),
  node_name: v.string(),
  address: v.string(),
  pinned_at: whole,
  last_seen: whole,
})
/** The key that a node showed first. */
export type PinRow = v.InferOutput<typeof PinRow>

export class PinStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async find(nodeId: string): Promise<PinRow | undefined> {
    return v.parse(
      v.optional(PinRow),
      await this.#db.one`SELECT node_id, public_key, node_name, address, pinned_at, last_seen
        FROM peers_pin WHERE node_id = ${nodeId}`,
    )
  }
  async list(limit: number): Promise<readonly PinRow[]> {
    return v.parse(
      v.array(PinRow),
      await this.#db.all`SELECT node_id, public_key, node_name, address, pinned_at, last_seen
        FROM peers_pin ORDER BY pinned_at, node_id LIMIT ${limit}`,
    )
  }
  async count(): Promise<number> {
    const row = await this.#db.one<{ readonly found: number | string }>`SELECT COUNT(*) AS found FROM peers_pin`
    return Number(row?.found ?? 0)
  }
  /** The first one stays when two come at once. */
  insert(row: PinRow): Statement {
    return this.#db.sql`INSERT INTO peers_pin (node_id, public_key, node_name, address, pinned_at, last_seen)
      VALUES (${row.node_id}, ${row.public_key}, ${row.node_name}, ${row.address}, ${row.pinned_at}, ${row.last_seen})
      ON CONFLICT (node_id) DO NOTHING`
  }
  async touch({ node_id, node_name, address, last_seen }: Omit<PinRow, 'public_key' | 'pinned_at'>): Promise<void> {
    await this.#db.run`UPDATE peers_pin
      SET node_name = ${node_name}, address = ${address}, last_seen = ${last_seen} WHERE node_id = ${node_id}`
  }
  /** For a node without one. */
  setKey(nodeId: string, publicKey: string): Statement {
    return this.#db.sql`UPDATE peers_pin SET public_key = ${publicKey} WHERE node_id = ${nodeId} AND public_key = ''`
  }
  remove(nodeId: string): Statement {
    return this.#db.sql`DELETE FROM peers_pin WHERE node_id = ${nodeId}`
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
