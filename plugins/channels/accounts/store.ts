import * as v from 'valibot'
import { readOwnJson, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'

const Flag = v.pipe(
  v.union([v.number(), v.string(), v.bigint()]),
  v.transform((value) => Number(value) !== 0),
)
const Json = v.pipe(v.string(), v.transform(readOwnJson))
const Table = v.record(v.string(), v.unknown())
const Key = v.object({ channel: v.string(), account_id: v.string() })
const Row = v.object({
  ...Key.entries,
  enabled: Flag,
  settings: v.nullable(v.pipe(Json, Table)),
  config: v.nullable(v.pipe(Json, Table)),
  secrets: v.pipe(Json, v.array(v.string())),
  has_token: Flag,
})
/** An account that was configured over the API, or a switch for one of the file. */
export type AccountRow = v.InferOutput<typeof Row>

const flag = (value: boolean): number => (value ? 1 : 0)

export class AccountStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof Row>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'channels_account', key: ['channel', 'account_id'], schema: Row, log })
  }

  /** A row that cannot be read may have been to switch off an account of the file: it stands as that. */
  async list(): Promise<readonly AccountRow[]> {
    const rows = await this.#db.all`SELECT * FROM channels_account ORDER BY channel, account_id`
    return rows.map(
      (row) =>
        this.#rows.one(row) ?? {
          ...v.parse(Key, row),
          enabled: false,
          settings: null,
          config: null,
          secrets: [],
          has_token: false,
        },
    )
  }

  save(row: AccountRow, at: string): Statement {
    const { channel, account_id: id, enabled, settings, config, secrets, has_token: hasToken } = row
    const [settingsText, configText] = [settings, config].map((part) => (part === null ? null : JSON.stringify(part)))
    return this.#db.sql`INSERT INTO channels_account
        (channel, account_id, enabled, settings, config, secrets, has_token, created_at, updated_at)
      VALUES (${channel}, ${id}, ${flag(enabled)}, ${settingsText ?? null}, ${configText ?? null},
        ${JSON.stringify(secrets)}, ${flag(hasToken)}, ${at}, ${at})
      ON CONFLICT (channel, account_id) DO UPDATE SET enabled = excluded.enabled, settings = excluded.settings,
        config = excluded.config, secrets = excluded.secrets, has_token = excluded.has_token,
        updated_at = excluded.updated_at`
  }
  /** For accounts of the file there may be no row: it is made. */
  setEnabled(channel: string, id: string, enabled: boolean, at: string): Statement {
    return this.#db.sql`INSERT INTO channels_account
        (channel, account_id, enabled, secrets, has_token, created_at, updated_at)
      VALUES (${channel}, ${id}, ${flag(enabled)}, '[]', 0, ${at}, ${at})
      ON CONFLICT (channel, account_id) DO UPDATE SET enabled = excluded.enabled, updated_at = excluded.updated_at`
  }
  remove(channel: string, id: string): Statement {
    return this.#db.sql`DELETE FROM channels_account WHERE channel = ${channel} AND account_id = ${id}`
  }
}
