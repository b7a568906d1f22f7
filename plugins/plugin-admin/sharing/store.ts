import { hash } from 'node:crypto'
import * as v from 'valibot'
import { readOwnJson, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'

/** What all daemons on a database do with a plugin: the last change of it. */
export const PluginChange = v.object({
  id: v.string(),
  name: v.string(),
  action: v.picklist(['install', 'remove']),
  version: v.string(),
  /** Where the first daemon had it from, as in `describeSource`. */
  source: v.string(),
  /** Of the archive, in hexadecimal digits; empty for a removal. */
  sha256: v.string(),
  size_bytes: v.number(),
  /** By which it was checked at the first daemon. */
  signature: v.nullable(v.string()),
  /** Accepted at the first daemon, which counts for all. */
  permissions: v.array(v.string()),
  /** Whether it was removed although others needed it. */
  force: v.boolean(),
  daemon: v.string(),
  changed_by: v.string(),
  changed_at: v.pipe(v.string(), v.isoTimestamp()),
})
export type PluginChange = v.InferOutput<typeof PluginChange>

/** As it was written, and to be checked before it is read. */
const ChangeRow = v.object({ name: v.string(), about: v.string(), mac: v.string() })
export type ChangeRow = v.InferOutput<typeof ChangeRow>
const CheckedRow = v.pipe(
  v.object({ name: v.string(), about: v.pipe(v.string(), v.transform(readOwnJson), PluginChange) }),
  v.transform(({ about }) => about),
)
const OutcomeFacts = {
  home: v.string(),
  daemon: v.string(),
  name: v.string(),
  change_id: v.string(),
  reason: v.string(),
}
const OutcomeRow = v.object({
  ...OutcomeFacts,
  /** `stopped`: it failed at another daemon, so this one has not begun. */
  outcome: v.picklist(['done', 'failed', 'refused', 'stopped']),
})
const UnknownOutcome = v.object({
  ...OutcomeFacts,
  outcome: v.pipe(
    v.unknown(),
    v.transform(() => 'unknown' as const),
  ),
})
/** `unknown`: what another version, or nobody, has written. The home may have the plugin. */
export type Outcome = v.InferOutput<typeof OutcomeRow | typeof UnknownOutcome>

const CHUNK_BYTES = 262_144

/** Every statement on the tables that the daemons of a database share. */
export class SharedStore {
  readonly #db: PluginDatabase
  readonly #changes: RowReader<typeof ChangeRow>
  readonly #checked: RowReader<typeof CheckedRow>
  readonly #outcomes: RowReader<typeof OutcomeRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    const change = { table: 'plugin_admin_change', key: ['name'], effect: 'is not adopted', log }
    this.#changes = new RowReader({ ...change, schema: ChangeRow })
    this.#checked = new RowReader({ ...change, schema: CheckedRow })
    const outcome = { table: 'plugin_admin_outcome', key: ['home', 'name'], effect: 'counts as unknown', log }
    this.#outcomes = new RowReader({ ...outcome, schema: OutcomeRow })
  }

  /** As they were written, in the order of the changes. */
  async changes(): Promise<readonly ChangeRow[]> {
    return this.#changes.all(await this.#db.all`SELECT name, about, mac FROM plugin_admin_change ORDER BY number`)
  }
  /** `undefined` for one that this version does not know. */
  read(row: ChangeRow): PluginChange | undefined {
    return this.#checked.one(row)
  }
  /** The archive takes the place of the one before. */
  put({ name, about, mac }: ChangeRow, archive: Uint8Array): readonly Statement[] {
    const chunks = Array.from({ length: Math.ceil(archive.length / CHUNK_BYTES) }, (_, at) =>
      archive.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES),
    )
    return [
      {
        ...this.#db.sql`INSERT INTO plugin_admin_change (name, number, about, mac)
          SELECT ${name}, COALESCE(MAX(number), 0) + 1, ${about}, ${mac} FROM plugin_admin_change WHERE 1 = 1
          ON CONFLICT (name) DO UPDATE SET number = excluded.number, about = excluded.about, mac = excluded.mac`,
        exclusive: 'plugin_admin_change',
      },
      this.#db.sql`DELETE FROM plugin_admin_chunk WHERE name = ${name}`,
      ...chunks.map(
        (bytes, at) => this.#db.sql`INSERT INTO plugin_admin_chunk (name, at, bytes) VALUES (${name}, ${at}, ${bytes})`,
      ),
    ]
  }
  /** `undefined` when it is not whole, or another one by now. */
  async archive({ name, sha256, size_bytes: size }: PluginChange): Promise<Uint8Array | undefined> {
    const rows = await this.#db.all<{ readonly bytes: Uint8Array }>`SELECT bytes FROM plugin_admin_chunk
      WHERE name = ${name} AND (SELECT SUM(LENGTH(bytes)) FROM plugin_admin_chunk WHERE name = ${name}) = ${size}
      ORDER BY at`
    const bytes = Buffer.concat(rows.map((row) => row.bytes))
    return hash('sha256', bytes) === sha256 ? bytes : undefined
  }

  async outcomes(): Promise<readonly Outcome[]> {
    const rows = await this.#db.all`SELECT home, daemon, name, change_id, outcome, reason FROM plugin_admin_outcome`
    return rows.map((row) => this.#outcomes.one(row) ?? v.parse(UnknownOutcome, row))
  }
  setOutcome({ home, daemon, name, change_id: id, outcome, reason }: Outcome): Statement {
    return this.#db.sql`INSERT INTO plugin_admin_outcome (home, daemon, name, change_id, outcome, reason)
      VALUES (${home}, ${daemon}, ${name}, ${id}, ${outcome}, ${reason})
      ON CONFLICT (home, name) DO UPDATE SET daemon = excluded.daemon, change_id = excluded.change_id,
        outcome = excluded.outcome, reason = excluded.reason`
  }

  /** The member whose turn it is. */
  async holder(): Promise<string | undefined> {
    return (await this.#db.one<{ readonly holder: string }>`SELECT holder FROM plugin_admin_turn`)?.holder
  }
  /** Writes nothing when it is the turn of another than `ended`. */
  takeTurn(self: string, ended: string | undefined): Statement {
    return this.#db.sql`INSERT INTO plugin_admin_turn (id, holder) VALUES (1, ${self})
      ON CONFLICT (id) DO UPDATE SET holder = excluded.holder
        WHERE plugin_admin_turn.holder = ${self} OR plugin_admin_turn.holder = ${ended ?? self}`
  }
  endTurn(self: string): Statement {
    return this.#db.sql`DELETE FROM plugin_admin_turn WHERE holder = ${self}`
  }

  async batch(statements: readonly Statement[]): Promise<readonly { readonly changes: number }[]> {
    return await this.#db.batch(statements)
  }
}
