import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import { sqlPart } from 'svc/sdk'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { InboundMessage } from 'svc/channels'
import { deliveryKey, InboxRow } from './schema.ts'
import type { InboxState } from './schema.ts'

const WaitingQueue = v.object({ queue: v.string(), next_at: v.nullable(v.string()) })
export interface InboxFilter {
  readonly channel: string
  readonly state: InboxState
  readonly limit: number
}

export interface Postponement {
  readonly attempts: number
  readonly nextAt: string | null
  readonly reason: string | null
}

/** The rows of `channels_inbox`. */
export class InboxStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof InboxRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'channels_inbox', key: ['id'], schema: InboxRow, log })
  }

  /** Whether the message is new. */
  async insert(row: InboxRow): Promise<boolean> {
    const { changes } = await this.#db.run`INSERT INTO channels_inbox (id, channel, account, message_id, conversation,
        queue, standing, message, state, owner, attempts, next_at, reason, agent_id, received_at, settled_at)
      VALUES (${row.id}, ${row.channel}, ${row.account}, ${row.message_id}, ${row.conversation}, ${row.queue},
        ${row.standing}, ${JSON.stringify(row.message)}, ${row.state}, ${row.owner}, ${row.attempts}, NULL, NULL, '',
        ${row.received_at}, NULL)
      ON CONFLICT (channel, account, message_id) DO NOTHING`
    return changes > 0
  }
  /**
   * Whether the message still waited. Only what its sender wrote changes: the row keeps what that sender may do, and
   * there are platforms on which others can send an edit.
   */
  async replace(channel: string, account: string, edit: InboundMessage): Promise<boolean> {
    const found = await this.#db.one`SELECT * FROM channels_inbox
      WHERE channel = ${channel} AND account = ${account} AND message_id = ${deliveryKey(edit)}`
    const row = this.#rows.oneOrThrow(found)
    if (row?.state !== 'pending') return false
    if (row.message.sender.id !== edit.sender.id || row.message.chat.id !== edit.chat.id) return false
    const message = { ...row.message, text: edit.text, attachments: edit.attachments }
    const { changes } = await this.#db.run`UPDATE channels_inbox SET message = ${JSON.stringify(message)}
      WHERE id = ${row.id} AND state = 'pending'`
    return changes > 0
  }
  /**
   * The oldest message of a queue that is not answered, for who works on none of it: one that is being worked on was left
   * so by a database that did not answer.
   */
  async head(queue: string, owner: string): Promise<InboxRow | undefined> {
    return this.#rows.first(
      (limit) => this.#db.all`SELECT * FROM channels_inbox
        WHERE queue = ${queue} AND state IN ('pending', 'processing') AND owner = ${owner}
        ORDER BY id LIMIT ${limit}`,
    )
  }
  async find(id: string): Promise<InboxRow | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM channels_inbox WHERE id = ${id}`)
  }
  /** The row if this instance has it now: two that try at the same time do not both. */
  async claim(id: string, owner: string): Promise<InboxRow | undefined> {
    const row = await this.#db.one`UPDATE channels_inbox
      SET state = 'processing', attempts = attempts + 1, next_at = NULL
      WHERE id = ${id} AND state IN ('pending', 'processing') AND owner = ${owner} RETURNING *`
    return this.#rows.oneOrThrow(row)
  }
  /**
   * Claims what `head` returns once the batch is on disk, unless that is postponed: with the batch that ends the message
   * before it, it costs no commit of its own. `written` is told whether there was such a row.
   */
  claimNext(queue: string, owner: string, written: (changes: number) => void): Statement {
    const statement = this.#db.sql`UPDATE channels_inbox
      SET state = 'processing', attempts = attempts + 1
      WHERE next_at IS NULL AND id = (SELECT id FROM channels_inbox
        WHERE queue = ${queue} AND state IN ('pending', 'processing') AND owner = ${owner} ORDER BY id LIMIT 1)`
    return { ...statement, written }
  }
  /** Whether there is a message that is not answered, of any owner. */
  async hasOpen(): Promise<boolean> {
    const row = await this.#db.one`SELECT id FROM channels_inbox WHERE state IN ('pending', 'processing') LIMIT 1`
    return row !== undefined
  }
  /** Those in which something is not answered, also what nobody works on as the database did not say that it is stored. */
  async queues(owner: string): Promise<readonly v.InferOutput<typeof WaitingQueue>[]> {
    const rows = await this.#db.all`SELECT queue, min(next_at) AS next_at FROM channels_inbox
      WHERE state IN ('pending', 'processing') AND owner = ${owner} GROUP BY queue ORDER BY min(id)`
    return v.parse(v.array(WaitingQueue), rows)
  }
  /**
   * The text is in the session of the agent. The row stays for the redeliveries, and the chat in it for what the turn
   * has started and asks there later.
   */
  done({ id, message }: InboxRow, agentId: string, at: string): Statement {
    const { chat, threadId, replyContext } = message
    const left = JSON.stringify({ text: '', chat: { id: chat.id, kind: chat.kind }, threadId, replyContext })
    return this.#db.sql`UPDATE channels_inbox SET state = 'done', settled_at = ${at}, agent_id = ${agentId},
        message = ${left}
      WHERE id = ${id} AND state IN ('pending', 'processing')`
  }
  /** Changes nothing once another owner has taken the message over. */
  async postpone({ id, owner }: InboxRow, { attempts, nextAt, reason }: Postponement): Promise<void> {
    await this.#db.run`UPDATE channels_inbox SET state = 'pending', attempts = ${attempts}, next_at = ${nextAt},
        reason = ${reason}
      WHERE id = ${id} AND state = 'processing' AND owner = ${owner}`
  }
  /** A postponed message is due now. */
  hasten(id: string): Statement {
    return this.#db.sql`UPDATE channels_inbox SET next_at = NULL WHERE id = ${id} AND state = 'pending'`
  }
  park(id: string, reason: string, at: string): Statement {
    return this.#db.sql`UPDATE channels_inbox SET state = 'parked', reason = ${reason}, settled_at = ${at}
      WHERE id = ${id} AND state IN ('pending', 'processing')`
  }
  revive(id: string, owner: string): Statement {
    return this.#db.sql`UPDATE channels_inbox SET state = 'pending', owner = ${owner}, attempts = 0, next_at = NULL,
        settled_at = NULL
      WHERE id = ${id} AND state = 'parked'`
  }
  drop(id: string): Statement {
    return this.#db.sql`UPDATE channels_inbox SET state = 'done', message = '{"text":""}'
      WHERE id = ${id} AND state = 'parked'`
  }
  /** Newest first. */
  async list({ channel, state, limit }: InboxFilter): Promise<readonly InboxRow[]> {
    // What the state says already, as the indexes say it.
    const isListed = ['done', 'parked'].includes(state)
      ? sqlPart`settled_at IS NOT NULL`
      : sqlPart`state IN ('pending', 'processing')`
    const rows = await this.#db.all`SELECT * FROM channels_inbox
      WHERE channel = ${channel} AND state = ${state} AND ${isListed} ORDER BY id DESC LIMIT ${limit}`
    return this.#rows.all(rows)
  }
  deleteSettled(doneBefore: string, parkedBefore: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM channels_inbox WHERE state = 'done' AND settled_at < ${doneBefore}`,
      this.#db.sql`DELETE FROM channels_inbox WHERE state = 'parked' AND settled_at < ${parkedBefore}`,
    ]
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
