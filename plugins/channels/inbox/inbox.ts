import { v7 } from 'uuid'
import { Refusal } from 'svc/sdk'
import type { Counter, Logger, Statement } from 'svc/sdk'
import type { ChannelAdapter, InboundMessage } from 'svc/channels'
import type { Audit } from '../../audit/contract.ts'
import type { Account } from '../accounts/account.ts'
import { messageOf, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { AdmissionControl, RefusalReason } from '../policies/admission.ts'
import { withDefaults } from '../policies/defaults.ts'
import type { Standing } from '../policies/people.ts'
import { ConnectionWaits } from './connection-waits.ts'
import type { AwaitedAccount } from './connection-waits.ts'
import { ConversationQueues } from './conversation-queues.ts'
import { OwnerLease } from './owners/lease.ts'
import type { OwnerStore } from './owners/store.ts'
import { deliveryKey } from './schema.ts'
import type { InboxRow } from './schema.ts'
import type { InboxFilter, InboxStore } from './store.ts'

const HOUR_MS = 3_600_000
const FIRST_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 60_000
/** The end of the queue of commands that are answered at once. */
const URGENT = ' command'

/** What became of a message that somebody worked on. */
export type Handled =
  | { readonly outcome: 'answered'; readonly agentId: string; readonly statements: readonly Statement[] }
  /** It is tried again later, or as soon as the account is connected, which does not count as a failed attempt. */
  | {
      readonly outcome: 'postponed'
      readonly reason: string
      readonly afterMs: number
      readonly waitsFor?: AwaitedAccount
    }
  | { readonly outcome: 'parked'; readonly reason: string; readonly statements: readonly Statement[] }
  /** This process ends; the next one goes on. */
  | { readonly outcome: 'released' }

export interface InboxDeps {
  readonly store: InboxStore
  readonly owners: OwnerStore
  /** The same in every process on one home. */
  readonly home: string
  readonly admission: AdmissionControl
  readonly clock: Clock
  readonly audit: Pick<Audit, 'entry'>
  readonly log: Pick<Logger, 'debug' | 'warn' | 'error'>
  readonly messages: Counter
  readonly settings: {
    readonly max_attempts: number
    readonly dedupe_hours: number
    readonly give_up_hours: number
    readonly max_conversations: number
    readonly lease_secs: number
  }
  /** Aborts when the plugin begins to unload. */
  readonly signal: AbortSignal
  readonly background: (work: () => Promise<void>) => void
  /** Whether a message is answered at once, beside what its conversation waits for. */
  readonly isUrgent: (account: Account, message: InboundMessage) => boolean
  /** Answers a message. Rejects for a failure that was not expected. */
  readonly handle: (row: InboxRow) => Promise<Handled>
  /** Tells the sender something, once for each message. */
  readonly notify: (account: Account, adapter: ChannelAdapter, message: InboundMessage, text: string) => Promise<void>
  /** Statements that tell the sender of a message that it was given up. */
  readonly giveUp: (row: InboxRow) => Promise<readonly Statement[]>
  readonly received: (row: InboxRow) => void
}

/** Messages of people: each is a row before it is acknowledged, and is answered in the order of its conversation. */
export class Inbox {
  readonly #deps: InboxDeps
  /** Marks the rows that this instance works on. */
  readonly #owner: OwnerLease
  readonly #queues: ConversationQueues
  readonly #waits = new ConnectionWaits()
  /** How often an account was connected. */
  #connections = 0
  /** Rows of earlier processes are in their queues: nothing new overtakes them. */
  #recovered: Promise<void> | undefined
  constructor(deps: InboxDeps) {
    this.#deps = deps
    const { store, clock, signal, background, settings } = deps
    this.#owner = new OwnerLease({
      ...deps,
      store: deps.owners,
      leaseMs: settings.lease_secs * 1000,
      takenOver: () => this.#startQueues(),
    })
    this.#queues = new ConversationQueues({
      clock,
      signal,
      background,
      maxRunning: settings.max_conversations,
      isUrgent: (queue) => queue.endsWith(URGENT),
      head: (queue) => store.head(queue, this.#owner.id),
      claim: (id) => store.claim(id, this.#owner.id),
      process: (row) => this.#process(row),
    })
  }

  /**
   * Settles when the message is durable, a duplicate, or refused by a policy. Rejects when it could not be stored.
   */
  async receive(account: Account, adapter: ChannelAdapter, message: InboundMessage): Promise<void> {
    await (this.#recovered ??= this.#recover())
    const { store, admission, messages } = this.#deps
    const decided = await admission.decide(account, adapter, message)
    if (decided.verdict === 'refused') return this.#refuse(account, adapter, message, decided.reason, decided.notice)
    if (message.isEdit === true) {
      const isReplaced = await store.replace(account.channel, account.id, message)
      messages.add(1, { channel: account.channel, outcome: isReplaced ? 'edited' : 'too_late' })
      return
    }
    const row = this.#toRow(account, message, decided.standing)
    const isNew = await this.#queues.add(row, () => store.insert(row))
    admission.remember(account, message)
    messages.add(1, { channel: account.channel, outcome: isNew ? 'accepted' : 'duplicate' })
    if (isNew) this.#deps.received(row)
  }
  async #refuse(
    account: Account,
    adapter: ChannelAdapter,
    message: InboundMessage,
    reason: RefusalReason,
    notice: string | undefined,
  ): Promise<void> {
    const { admission, messages, notify } = this.#deps
    if (notice !== undefined) await notify(account, adapter, message, notice)
    // Beyond a rate limit the same message may come again; what a rule refuses is refused then too.
    if (reason !== 'rate_limit') admission.remember(account, message)
    messages.add(1, { channel: account.channel, outcome: reason })
  }
  #toRow(account: Account, message: InboundMessage, standing: Standing): InboxRow {
    const conversation = conversationKey(account, message)
    const isUrgent = this.#deps.isUrgent(account, message)
    return {
      id: v7(),
      channel: account.channel,
      account: account.id,
      message_id: deliveryKey(message),
      conversation,
      queue: isUrgent ? `${conversation}${URGENT}` : conversation,
      standing: standing === 'nobody' ? 'anybody' : standing,
      message,
      state: 'pending',
      owner: this.#owner.id,
      attempts: 0,
      next_at: null,
      reason: null,
      agent_id: '',
      received_at: toIso(this.#deps.clock.now()),
      settled_at: null,
    }
  }

  /** Goes on with what is not answered: at the start, on a timer, and when an account connects. */
  async resume(): Promise<void> {
    // A daemon without messages registers with the first one.
    if (!this.#recovered && !(await this.#deps.store.hasOpen())) return
    await (this.#recovered ??= this.#recover())
    await this.#startQueues()
  }
  async #recover(): Promise<void> {
    try {
      await this.#owner.begin()
      await this.#startQueues()
    } catch (error) {
      this.#recovered = undefined
      throw error
    }
  }
  async #startQueues(): Promise<void> {
    for (const { queue } of await this.#deps.store.queues(this.#owner.id)) this.#queues.start(queue)
  }
  /** Goes on with the messages that wait for this account. */
  async connected(channel: string, accountId: string): Promise<void> {
    this.#connections++
    const rows = this.#waits.take(channel, accountId)
    if (rows.length === 0) return
    await this.#deps.store.commit(rows.map(({ id }) => this.#deps.store.hasten(id)))
    for (const { queue } of rows) this.#queues.start(queue)
  }
  /** Lets another daemon on the database go on with what is left. */
  async close(): Promise<void> {
    await this.#owner.end()
  }

  /** Whether the next row of the queue is claimed already. */
  async #process(row: InboxRow): Promise<boolean> {
    const { settings, signal, handle } = this.#deps
    if (row.attempts > settings.max_attempts) {
      await this.#park(row, 'the attempts to answer it were not ended')
      return false
    }
    this.#waits.delete(row)
    const connections = this.#connections
    let handled: Handled
    try {
      handled = await handle(row)
    } catch (error) {
      if (!signal.aborted) await this.#failed(row, error)
      return false
    }
    if (handled.outcome === 'answered') return this.#answered(row, handled)
    if (handled.outcome === 'postponed') await this.#postpone(row, handled, connections)
    else if (handled.outcome === 'parked') await this.#park(row, handled.reason, handled.statements)
    return false
  }
  async #answered(row: InboxRow, { agentId, statements }: Extract<Handled, { outcome: 'answered' }>): Promise<boolean> {
    const { store, clock } = this.#deps
    let isNextClaimed = false
    await store.commit([
      store.done(row, agentId, toIso(clock.now())),
      store.claimNext(row.queue, this.#owner.id, (changes) => (isNextClaimed = changes > 0)),
      ...statements,
    ])
    row.state = 'done'
    return isNextClaimed
  }
  /** `connections`: how often an account had been connected when the work on the message began. */
  async #postpone(
    row: InboxRow,
    { reason, afterMs, waitsFor }: Extract<Handled, { outcome: 'postponed' }>,
    connections: number,
  ): Promise<void> {
    const { store, settings, clock, log } = this.#deps
    const now = clock.now()
    if (now - Date.parse(row.received_at) > settings.give_up_hours * HOUR_MS) return this.#park(row, reason)
    log.debug('a message of a channel waits', { channel: row.channel, message: row.id, reason })
    if (waitsFor) this.#waits.add(row, waitsFor)
    await store.postpone(row, { attempts: row.attempts - 1, nextAt: toIso(now + afterMs), reason })
    // An account that connected meanwhile found nothing that waits.
    if (waitsFor && this.#connections !== connections) await store.commit([store.hasten(row.id)])
  }
  async #failed(row: InboxRow, error: unknown): Promise<void> {
    const { store, settings, clock, log } = this.#deps
    const reason = messageOf(error)
    log.error('a message of a channel could not be answered', { channel: row.channel, message: row.id, error: reason })
    if (row.attempts >= settings.max_attempts) return this.#park(row, reason)
    const pauseMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (row.attempts - 1))
    await store.postpone(row, { attempts: row.attempts, nextAt: toIso(clock.now() + pauseMs), reason })
  }
  async #park(row: InboxRow, reason: string, statements?: readonly Statement[]): Promise<void> {
    const { store, clock, log, giveUp } = this.#deps
    const told = statements ?? (await giveUp(row))
    const entry = this.#entry(row, `is parked after ${row.attempts} attempts: ${reason}`)
    await store.commit([store.park(row.id, reason, toIso(clock.now())), entry, ...told])
    log.warn('a message of a channel is parked', { channel: row.channel, message: row.id, reason })
  }

  list(filter: InboxFilter): Promise<readonly InboxRow[]> {
    return this.#deps.store.list(filter)
  }
  /** Throws `message_not_found`, and `conflict` for one that is not parked. */
  async retry(channel: string, id: string): Promise<void> {
    const { store } = this.#deps
    const row = await this.#requireParked(channel, id)
    await store.commit([store.revive(id, this.#owner.id), this.#entry(row, 'is to be answered again')])
    this.#queues.start(row.queue)
  }
  /** As `retry`. */
  async discard(channel: string, id: string): Promise<void> {
    const { store } = this.#deps
    const row = await this.#requireParked(channel, id)
    await store.commit([store.drop(id), this.#entry(row, 'is discarded')])
  }
  async #requireParked(channel: string, id: string): Promise<InboxRow> {
    const row = await this.#deps.store.find(id)
    if (row?.channel !== channel)
      throw new Refusal('message_not_found', `No message ${id} in the inbox of ${channel}; old ones are deleted`)
    if (row.state !== 'parked') throw new Refusal('conflict', `The message is ${row.state}, not parked`)
    return row
  }
  #entry(row: InboxRow, what: string): Statement {
    return this.#deps.audit.entry({
      event: 'channel_changed',
      agentId: row.agent_id,
      details: `message ${row.id} from ${row.channel} account ${row.account} ${what}`,
    })
  }
  async deleteOld(retentionDays: number): Promise<void> {
    const { store, settings, clock } = this.#deps
    const before = (hours: number): string => toIso(clock.now() - hours * HOUR_MS)
    await store.commit(store.deleteSettled(before(settings.dedupe_hours), before(retentionDays * 24 * 4)))
  }
}

/** One conversation for each chat, or for each thread of it. */
export function conversationKey(
  account: Account,
  { chat, threadId }: Pick<InboundMessage, 'chat' | 'threadId'>,
): string {
  const thread = withDefaults(account.settings).threading ? (threadId ?? '') : ''
  // As JSON, in which no part can pass for two; PostgreSQL stores no zero bytes.
  return JSON.stringify([account.channel, account.id, chat.id, thread])
}
