import { omitUndefined, Refusal } from 'svc/sdk'
import type { Counter, Logger, Statement } from 'svc/sdk'
import type { OutboundAttachment, SentMessage } from 'svc/channels'
import type { Audit } from '../../audit/contract.ts'
import type { Journal } from '../../journal/contract.ts'
import { toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { Connections, OpenConnection } from '../connections/connections.ts'
import { AccountSender } from './account-sender.ts'
import { partId } from './message.ts'
import type { Drafts, OutgoingMessage, StoredAttachment } from './message.ts'
import { emptyRow, toRows } from './rows.ts'
import type { OutboxRow } from './schema.ts'
import type { OutboxFilter, OutboxStore } from './store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export interface OutboxDeps {
  readonly store: OutboxStore
  readonly connections: Pick<Connections, 'find'>
  readonly journal: Pick<Journal, 'intend' | 'settle'>
  readonly audit: Pick<Audit, 'entry'>
  readonly clock: Clock
  readonly random?: () => number
  readonly settings: {
    readonly max_attempts: number
    readonly resend_uncertain: boolean
    readonly give_up_hours: number
    readonly max_concurrent_sends: number
    readonly max_rejections: number
    readonly format_chars: number
    readonly max_failed_chats: number
    readonly send_retry_min_ms: number
    readonly send_retry_max_ms: number
  }
  readonly log: Pick<Logger, 'warn' | 'error'>
  readonly sends: Counter
  readonly signal: AbortSignal
  readonly background: (work: () => Promise<void>) => void
  readonly readFile: (attachment: StoredAttachment) => Promise<Uint8Array>
  /** Told of every message that the platform took, and of every dead letter. */
  readonly settled: (row: OutboxRow) => void
}

/** Every message to a platform is a row here before it is sent, and is sent in the order of the rows of its chat. */
export class Outbox {
  readonly #deps: OutboxDeps
  readonly #senders = new Map<string, AccountSender>()
  constructor(deps: OutboxDeps) {
    this.#deps = deps
  }

  /**
   * Statements for the batch that makes a result durable; it is sent once that batch is on disk. None for an empty
   * text, nor for what must not be shown on a public platform.
   */
  async add(message: OutgoingMessage): Promise<readonly Statement[]> {
    const { clock, settings } = this.#deps
    const rows = await toRows(message, toIso(clock.now()), settings.format_chars)
    return rows.flatMap((row) => [
      this.#deps.store.insert(row, (changes) => {
        if (changes > 0) this.#sender(row.channel, row.account).add(row)
      }),
      ...this.#intend(row),
    ])
  }
  /** The newest answer of an agent to a chat. */
  lastAnswer(agentId: string): Promise<OutboxRow | undefined> {
    return this.#deps.store.lastAnswer(agentId)
  }
  async send(message: OutgoingMessage): Promise<void> {
    const statements = await this.add(message)
    if (statements.length > 0) await this.#deps.store.commit(statements)
  }
  #intend(row: OutboxRow): readonly Statement[] {
    if (!isOfTurn(row)) return []
    const input = JSON.stringify({ channel: row.channel, recipient: row.chat, message_id: row.id })
    return [this.#deps.journal.intend({ key: row.id, turnId: row.turn_id, kind: 'send', name: row.channel, input })]
  }

  /**
   * Records a message that shows an answer while it is written, before it is sent and, with the platform's id, after.
   * `false` when the answer is here already, by another daemon on the database: then it is not shown any more.
   */
  async draft({ id, messageId, part, account, to, agentId, turnId }: Draft, platformId?: string): Promise<boolean> {
    const { store, clock } = this.#deps
    if (platformId !== undefined) {
      await store.commit([store.drafted(id, platformId)])
      return true
    }
    const row = {
      ...emptyRow(account, to, toIso(clock.now())),
      id,
      message_id: messageId,
      part,
      state: 'draft' as const,
      agent_id: agentId,
      turn_id: turnId,
    }
    let isDraft = false
    await store.commit([store.insert(row, (changes) => (isDraft = changes > 0))])
    return isDraft
  }
  /** The platform did not take a draft. */
  async dropDraft({ id }: Draft): Promise<void> {
    await this.#deps.store.commit([this.#deps.store.dropDraft(id)])
  }
  async drafts(messageId: string): Promise<Drafts> {
    const rows = await this.#deps.store.drafts(messageId)
    return new Map(rows.map(({ part, platform_id: id }) => [part, id]))
  }
  /** The state of the first message of a result. */
  async state(messageId: string): Promise<OutboxRow['state'] | undefined> {
    return (await this.#deps.store.find(partId(messageId, 0)))?.state
  }
  /** Where a message goes, or went. */
  async destination(
    messageId: string,
  ): Promise<{ readonly channel: string; readonly account: string; readonly chat: string } | undefined> {
    return this.#deps.store.find(partId(messageId, 0))
  }
  /** Whether a turn has a message here. */
  hasSent(turnId: string): Promise<boolean> {
    return this.#deps.store.hasOfTurn(turnId)
  }

  /** Sends what is due of an account, if it is connected. */
  wake(channel: string, accountId: string): void {
    this.#sender(channel, accountId).wake()
  }

  /** Reads what another daemon on the database has added to accounts that are connected here. */
  refresh(): void {
    for (const sender of this.#senders.values()) sender.refresh()
  }
  list(filter: OutboxFilter): Promise<readonly OutboxRow[]> {
    return this.#deps.store.list(filter)
  }
  /** Throws `message_not_found`, and `conflict` for one that is not a dead letter. */
  async retry(channel: string, id: string): Promise<void> {
    const row = await this.#requireDead(channel, id, 'sent again')
    const entry = this.#entry(row, 'is to be sent again')
    await this.#deps.store.commit([this.#deps.store.revive(id), entry])
    const uncertain = Math.min(row.uncertain, 1)
    const revived: OutboxRow = { ...row, state: 'pending', attempts: 0, uncertain, next_at: null, settled_at: null }
    this.#sender(row.channel, row.account).add(revived)
  }
  /** As `retry`. */
  async discard(channel: string, id: string): Promise<void> {
    const row = await this.#requireDead(channel, id, 'discarded')
    const at = toIso(this.#deps.clock.now())
    await this.#deps.store.commit([this.#deps.store.discard(id, at), this.#entry(row, 'is discarded')])
  }
  async #requireDead(channel: string, id: string, action: string): Promise<OutboxRow> {
    const row = await this.#deps.store.find(id)
    if (row?.channel !== channel)
      throw new Refusal('message_not_found', `No message ${id} in the outbox; those that ended are kept a while`)
    if (row.state === 'dead') return row
    throw new Refusal('conflict', `The message is ${row.state}: only a dead letter is ${action}`)
  }

  /** How many messages of an account wait, and how many could not be sent. */
  async counts(channel: string, account: string): Promise<{ readonly outbox: number; readonly deadLetters: number }> {
    const { store } = this.#deps
    const [outbox, deadLetters] = await Promise.all([
      store.count(channel, account, 'waiting'),
      store.count(channel, account, 'dead'),
    ])
    return { outbox, deadLetters }
  }
  async deleteOld(retentionDays: number): Promise<void> {
    const before = (days: number): string => toIso(this.#deps.clock.now() - days * DAY_MS)
    await this.#deps.store.commit(this.#deps.store.deleteSettled(before(retentionDays), before(retentionDays * 4)))
  }

  #sender(channel: string, account: string): AccountSender {
    const key = `${channel}\u0000${account}`
    let sender = this.#senders.get(key)
    if (!sender) this.#senders.set(key, (sender = this.#createSender(channel, account)))
    return sender
  }
  #createSender(channel: string, account: string): AccountSender {
    const { store, connections, clock, settings, signal, background, random = Math.random } = this.#deps
    return new AccountSender({
      clock,
      random,
      signal,
      background,
      maxAttempts: settings.max_attempts,
      resendUncertain: settings.resend_uncertain,
      giveUpMs: settings.give_up_hours * HOUR_MS,
      backOff: { minMs: settings.send_retry_min_ms, maxMs: settings.send_retry_max_ms },
      maxConcurrent: settings.max_concurrent_sends,
      maxRejections: settings.max_rejections,
      maxFailedChats: settings.max_failed_chats,
      connection: () => connections.find(channel, account),
      load: (limit) => store.waiting(channel, account, limit),
      sending: (row) => store.beginSend(row),
      notSent: (row) => store.endSend(row),
      sent: (row, platformId) => this.#sent(row, platformId),
      deferred: (row) => store.commit([store.deferred(row)]),
      dead: (row) => this.#dead(row),
      transmit: (open, row) => this.#transmit(open, row),
    })
  }

  async #transmit({ connection, adapter }: OpenConnection, row: OutboxRow): Promise<SentMessage> {
    const { text, plainText, replyTo, replyContext, buttons, attachments = [] } = row.payload
    const message = {
      id: row.id,
      to: { chatId: row.chat, ...(row.thread !== '' && { threadId: row.thread }), ...omitUndefined({ replyContext }) },
      text,
      plainText,
      attachments: attachments.map((each): OutboundAttachment => ({
        ...each,
        bytes: () => this.#deps.readFile(each),
      })),
      ...(adapter.capabilities.replies === true && omitUndefined({ replyTo })),
      ...(adapter.capabilities.buttons === true && omitUndefined({ buttons })),
    }
    if (row.platform_id !== null && row.platform_id !== '') {
      const shown = { id: row.platform_id }
      if (row.payload.isWithdrawn === true && connection.delete) await connection.delete(shown, message.to)
      else await connection.edit?.(shown, message)
      if (connection.edit) return shown
    }
    const mayBeSent = row.uncertain > 0
    const sent = await connection.send({ ...message, ...(mayBeSent && { mayBeSent }) })
    // The platform told that it had the message: nothing is uncertain any more.
    if (sent.wasSentBefore === true) row.uncertain = 0
    // Under this id the platform may have shown a draft before, which it did not replace.
    if (adapter.capabilities.idempotentSend && row.uncertain > 0) {
      await connection.edit?.(sent, message)
      row.uncertain = 0
    }
    return sent
  }
  async #sent(row: OutboxRow, platformId: string): Promise<void> {
    const { store, journal, clock, sends, settled } = this.#deps
    row.state = 'sent'
    row.settled_at = toIso(clock.now())
    row.platform_id = platformId
    const receipt = row.uncertain > 0 ? 'best_effort' : 'sent'
    const settle = isOfTurn(row) ? [journal.settle(row.id, 'done', receipt)] : []
    await store.commit([store.sent(row, platformId, row.settled_at), ...settle])
    sends.add(1, { channel: row.channel, outcome: receipt })
    if (row.payload.isWithdrawn !== true) settled(row)
  }
  async #dead(row: OutboxRow): Promise<void> {
    const { store, journal, clock, sends, settled, log } = this.#deps
    const error = row.error ?? 'unknown'
    row.state = 'dead'
    row.settled_at = toIso(clock.now())
    const settle = isOfTurn(row) ? [journal.settle(row.id, 'failed', error)] : []
    const entry = this.#entry(row, `is a dead letter after ${row.attempts} attempts: ${error}`)
    await store.commit([store.dead(row, row.settled_at), ...settle, entry])
    sends.add(1, { channel: row.channel, outcome: 'dead' })
    log.warn('a message could not be sent and is a dead letter', { channel: row.channel, message: row.id, error })
    if (row.payload.isWithdrawn !== true) settled(row)
  }
  #entry(row: OutboxRow, what: string): Statement {
    return this.#deps.audit.entry({
      event: 'channel_changed',
      agentId: row.agent_id,
      details: `message ${row.id} to ${row.channel} account ${row.account}, chat ${row.chat} ${what}`,
    })
  }
}

export interface Draft extends Pick<OutgoingMessage, 'account' | 'to'> {
  readonly id: string
  readonly messageId: string
  readonly part: number
  readonly agentId: string
  readonly turnId: string
}

/** Whether it is a result of a turn, with a receipt. What removes a part that was shown too much is none. */
function isOfTurn({ turn_id: turnId, payload }: OutboxRow): boolean {
  return turnId !== '' && payload.isWithdrawn !== true
}
