import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { OutboxRow } from './schema.ts'
import type { OutboxState } from './schema.ts'

const Count = v.object({ n: v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number)) })
export interface OutboxFilter {
  readonly channel?: string | undefined
  readonly account?: string | undefined
  readonly state: OutboxState
  readonly limit: number
}

/** The rows of `channels_outbox`. */
export class OutboxStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof OutboxRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'channels_outbox', key: ['id'], schema: OutboxRow, log })
  }

  /** Writes nothing when the row is there already, unless as a draft. */
  insert(row: OutboxRow, written: (changes: number) => void): Statement {
    const payload = JSON.stringify(row.payload)
    const statement = this.#db.sql`INSERT INTO channels_outbox (id, message_id, channel, account, chat, thread, seq,
        part, parts, kind, payload, state, attempts, uncertain, next_at, platform_id, error, agent_id, turn_id,
        created_at, settled_at)
      VALUES (${row.id}, ${row.message_id}, ${row.channel}, ${row.account}, ${row.chat}, ${row.thread}, ${row.seq},
        ${row.part}, ${row.parts}, ${row.kind}, ${payload}, ${row.state}, ${row.attempts}, ${row.uncertain}, NULL,
        ${row.platform_id}, NULL,
        ${row.agent_id}, ${row.turn_id}, ${row.created_at}, NULL)
      ON CONFLICT (id) DO UPDATE SET state = excluded.state, payload = excluded.payload, parts = excluded.parts,
        seq = excluded.seq, attempts = excluded.attempts, uncertain = excluded.uncertain
      WHERE channels_outbox.state = 'draft'`
    return { ...statement, written }
  }
  drafted(id: string, platformId: string): Statement {
    return this.#db.sql`UPDATE channels_outbox SET platform_id = ${platformId} WHERE id = ${id} AND state = 'draft'`
  }
  /** The platform did not take it. */
  dropDraft(id: string): Statement {
    return this.#db.sql`DELETE FROM channels_outbox WHERE id = ${id} AND state = 'draft' AND platform_id IS NULL`
  }
  /** Whether it still waits: another daemon on the database may have sent it meanwhile. */
  async beginSend({ id, attempts, uncertain }: OutboxRow): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE channels_outbox
      SET state = 'sending', attempts = ${attempts}, uncertain = ${uncertain}
      WHERE id = ${id} AND state IN ('pending', 'sending') AND attempts = ${attempts - 1}`
    return changes > 0
  }
  /** The attempt was not made after all. */
  async endSend({ id, attempts }: OutboxRow): Promise<void> {
    await this.#db.run`UPDATE channels_outbox SET state = 'pending', attempts = ${attempts - 1}
      WHERE id = ${id} AND state = 'sending' AND attempts = ${attempts}`
  }
  sent({ id, attempts }: OutboxRow, platformId: string, at: string): Statement {
    return this.#db.sql`UPDATE channels_outbox SET state = 'sent', platform_id = ${platformId}, attempts = ${attempts},
        error = NULL, next_at = NULL, settled_at = ${at}
      WHERE id = ${id}`
  }
  deferred(row: OutboxRow): Statement {
    return this.#db.sql`UPDATE channels_outbox SET state = 'pending', attempts = ${row.attempts},
        uncertain = ${row.uncertain}, next_at = ${row.next_at}, error = ${row.error},
        platform_id = ${row.platform_id}
      WHERE id = ${row.id} AND state IN ('pending', 'sending')`
  }
  dead({ id, attempts, uncertain, error }: OutboxRow, at: string): Statement {
    return this.#db.sql`UPDATE channels_outbox SET state = 'dead', attempts = ${attempts}, uncertain = ${uncertain},
        error = ${error}, next_at = NULL, settled_at = ${at}
      WHERE id = ${id} AND state IN ('pending', 'sending')`
  }
  revive(id: string): Statement {
    return this.#db.sql`UPDATE channels_outbox SET state = 'pending', attempts = 0, next_at = NULL, settled_at = NULL,
        uncertain = CASE WHEN uncertain > 0 THEN 1 ELSE 0 END
      WHERE id = ${id} AND state = 'dead'`
  }
  discard(id: string, at: string): Statement {
    return this.#db.sql`UPDATE channels_outbox SET state = 'discarded', settled_at = ${at}
      WHERE id = ${id} AND state = 'dead'`
  }

  async find(id: string): Promise<OutboxRow | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM channels_outbox WHERE id = ${id}`)
  }
  async drafts(messageId: string): Promise<readonly OutboxRow[]> {
    return this.#rows.all(
      await this.#db.all`SELECT * FROM channels_outbox WHERE message_id = ${messageId} AND state = 'draft'`,
    )
  }
  /** Oldest first. */
  async waiting(channel: string, account: string, limit: number): Promise<readonly OutboxRow[]> {
    const rows = await this.#db.all`SELECT * FROM channels_outbox
      WHERE channel = ${channel} AND account = ${account} AND state IN ('pending', 'sending')
      ORDER BY seq, part LIMIT ${limit}`
    return this.#rows.all(rows)
  }
  /** Newest first. */
  async list({ channel = '', account = '', state, limit }: OutboxFilter): Promise<readonly OutboxRow[]> {
    const rows = await this.#db.all`SELECT * FROM channels_outbox
      WHERE state = ${state} AND (${channel} = '' OR channel = ${channel}) AND (${account} = '' OR account = ${account})
      ORDER BY seq DESC, part DESC LIMIT ${limit}`
    return this.#rows.all(rows)
  }
  /** The newest answer of an agent. */
  async lastAnswer(agentId: string): Promise<OutboxRow | undefined> {
    const row = await this.#db.one`SELECT * FROM channels_outbox
      WHERE agent_id = ${agentId} AND kind = 'answer' ORDER BY created_at DESC, seq DESC LIMIT 1`
    return this.#rows.oneOrThrow(row)
  }
  async hasOfTurn(turnId: string): Promise<boolean> {
    return (
      (await this.#db.one`SELECT id FROM channels_outbox WHERE turn_id = ${turnId} AND state <> 'draft' LIMIT 1`) !==
      undefined
    )
  }
  async count(channel: string, account: string, of: 'waiting' | 'dead'): Promise<number> {
    const [state, other] = of === 'dead' ? ['dead', 'dead'] : ['pending', 'sending']
    const row = await this.#db.one`SELECT count(*) AS n FROM channels_outbox
      WHERE channel = ${channel} AND account = ${account} AND state IN (${state}, ${other})`
    return v.parse(Count, row).n
  }
  deleteSettled(sentBefore: string, deadBefore: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM channels_outbox
        WHERE state IN ('sent', 'discarded', 'draft') AND coalesce(settled_at, created_at) < ${sentBefore}`,
      this.#db.sql`DELETE FROM channels_outbox WHERE state = 'dead' AND settled_at < ${deadBefore}`,
    ]
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
