import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'

const whole = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number))
const PinRow = v.object({
  node_id: v.string(),
  /** Empty, or in hexadecimal digits. */
  public_key: v.pipe(v.string(), v.regex(/^(?:[\da-f]{2})*$/i)),
  node_name: v.string(),
  address: v.string(),
  pinned_at: whole,
  last_seen: whole,
})
/** The key that a node showed first. */
export type PinRow = v.InferOutput<typeof PinRow>

const Asked = v.object({ turn_id: v.string(), tokens: v.nullable(whole) })
/** A turn that a node asked for; `tokens` is `null` until it has ended. */
export type Asked = v.InferOutput<typeof Asked>

/** Turns that other nodes asked for in the last hour. */
export class AskedStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async of(nodeId: string, since: number): Promise<readonly Asked[]> {
    return v.parse(
      v.array(Asked),
      await this.#db.all`SELECT turn_id, tokens FROM peers_asked WHERE node_id = ${nodeId} AND asked_at > ${since}`,
    )
  }
  /** `since`: those from before are removed. */
  async add(turnId: string, nodeId: string, at: number, since: number): Promise<void> {
    await this.#db.batch([
      this.#db.sql`DELETE FROM peers_asked WHERE asked_at <= ${since}`,
      this.#db.sql`INSERT INTO peers_asked (turn_id, node_id, asked_at) VALUES (${turnId}, ${nodeId}, ${at})
        ON CONFLICT (turn_id) DO NOTHING`,
    ])
  }
  async settle(turnId: string, tokens: number): Promise<void> {
    await this.#db.run`UPDATE peers_asked SET tokens = ${tokens} WHERE turn_id = ${turnId}`
  }
}

/** Nonces that any daemon on the database has seen. */
export class NonceStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** Whether nobody took it before. */
  async take(nonce: string, expiresAt: number, now: number): Promise<boolean> {
    const [, taken] = await this.#db.batch([
      this.#db.sql`DELETE FROM peers_nonce WHERE expires_at < ${now}`,
      this.#db.sql`INSERT INTO peers_nonce (nonce, expires_at) VALUES (${nonce}, ${expiresAt})
        ON CONFLICT (nonce) DO NOTHING`,
    ])
    return taken?.changes === 1
  }
}

/** Which daemon on the database dials which entry of `network.peers`. */
export class DialerStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async owner(target: string): Promise<string | undefined> {
    const row = await this.#db.one<{ readonly owner: string }>`SELECT owner FROM peers_dialer WHERE target = ${target}`
    return row?.owner
  }
  /** Takes an entry from its owner, or one that has none, unless somebody else did. */
  async take(
    target: string,
    owner: string,
    before: string | undefined,
    conditions: readonly Statement[],
  ): Promise<boolean> {
    const outcomes = await this.#db.batch([
      ...conditions,
      before === undefined
        ? this.#db.sql`INSERT INTO peers_dialer (target, owner) VALUES (${target}, ${owner})
            ON CONFLICT (target) DO NOTHING`
        : this.#db.sql`UPDATE peers_dialer SET owner = ${owner} WHERE target = ${target} AND owner = ${before}`,
    ])
    return outcomes.at(-1)?.changes === 1
  }
}

export class PinStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof PinRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'peers_pin', key: ['node_id'], schema: PinRow, log })
  }

  async find(nodeId: string): Promise<PinRow | undefined> {
    return this.#rows.oneOrThrow(
      await this.#db.one`SELECT node_id, public_key, node_name, address, pinned_at, last_seen
        FROM peers_pin WHERE node_id = ${nodeId}`,
    )
  }
  async list(limit: number): Promise<readonly PinRow[]> {
    return this.#rows.all(
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
  /** Goes after `insert`: with too many its key becomes NULL, which the column refuses. */
  requireRoom(nodeId: string, max: number): Statement {
    return {
      ...this.#db.sql`UPDATE peers_pin SET public_key = CASE WHEN (SELECT COUNT(*) FROM peers_pin) <= ${max}
        THEN public_key END WHERE node_id = ${nodeId}`,
      exclusive: 'peers_pin',
    }
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
