import { randomUUID } from 'node:crypto'
import type { ChannelAdapter } from 'svc/channels'
import type { Counter, PluginContext, Tokens } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Approval, Approvals } from '../approvals/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Chat, SlashCommands, Turns } from '../chat/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import type { Journal } from '../journal/contract.ts'
import type { Screening } from '../screening/contract.ts'
import type { Sessions } from '../sessions/contract.ts'
import type { Account } from './accounts/account.ts'
import { accountKey } from './accounts/account.ts'
import { systemClock, toIso } from './clock.ts'
import type { Clock } from './clock.ts'
import { ChatCommands, isUrgentCommand } from './commands/chat-commands.ts'
import type { Settings } from './config.ts'
import type { Connections } from './connections/connections.ts'
import { MessageReceived, MessageSent } from './contract.ts'
import { Inbox } from './inbox/inbox.ts'
import { MessageHandler } from './inbox/message-handler.ts'
import { Notices } from './inbox/notices.ts'
import type { InboxRow } from './inbox/schema.ts'
import { InboxStore } from './inbox/store.ts'
import { TurnAnswerer } from './inbox/turn-answerer.ts'
import { Outbox } from './outbox/outbox.ts'
import type { OutboxRow } from './outbox/schema.ts'
import { OutboxStore } from './outbox/store.ts'
import { AdmissionControl } from './policies/admission.ts'
import { PairingStore } from './policies/store.ts'
import { Pairing } from './policies/pairing.ts'
import { Bindings } from './routing/bindings.ts'
import { Conversations } from './routing/conversations.ts'
import { Router } from './routing/router.ts'
import { RoutingStore } from './routing/store.ts'

export interface MessagingDeps extends Pick<
  PluginContext<Settings, Tokens, Tokens>,
  'config' | 'db' | 'vault' | 'hooks' | 'metrics' | 'log' | 'leaving' | 'run'
> {
  readonly agents: Agents
  readonly audit: Audit
  readonly chat: Chat
  readonly turns: Turns
  readonly slashCommands: SlashCommands
  readonly sessions: Sessions
  readonly journal: Journal
  readonly screening: Screening
  readonly approvals: () => Approvals | undefined
  readonly workspaces: () => Workspaces | undefined
  readonly connections: Connections
  readonly account: (channel: string, accountId: string) => Account | undefined
  /** Imports the code of the channel; `undefined` when its plugin is not there. */
  readonly adapter: (channel: string) => Promise<ChannelAdapter | undefined>
  readonly clock?: Clock
}
/** What happened in an account since the plugin was loaded. */
export interface AccountCounts {
  received: number
  sent: number
  failed: number
  lastMessageAt: string | null
  /** A chat that no agent answers. */
  unanswered: string | undefined
}

/** What lies between the connections and the agents: inbox, policies, routing, commands and outbox. */
export class Messaging {
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly pairing: Pairing
  readonly bindings: Bindings
  readonly conversations: Conversations
  readonly router: Router
  readonly #deps: MessagingDeps
  readonly #notices: Notices
  readonly #counts = new Map<string, AccountCounts>()

  constructor(deps: MessagingDeps) {
    const { config, db, vault, audit, clock = systemClock, leaving: signal } = deps
    this.#deps = deps
    const now = (): number => clock.now()
    const nowIso = (): string => toIso(now())
    const common = { ...deps, clock, signal, background: this.#background, settings: config }
    const counters = createCounters(deps)
    this.outbox = new Outbox({
      ...common,
      store: new OutboxStore(db),
      sends: counters.sent,
      readFile: (file) => readFile(deps.workspaces(), file.agentId, file.path),
      settled: (row) => this.#settled(row),
    })
    this.pairing = new Pairing({ audit, vault, clock, settings: config, store: new PairingStore(db) })
    const routing = new RoutingStore(db)
    this.bindings = new Bindings({ store: routing, audit, maxBindings: config.max_bindings, now: nowIso })
    this.conversations = new Conversations({ store: routing, now: nowIso })
    this.router = new Router({ ...deps, ...this.#routing(), defaultAgent: config.default_agent })
    const store = new InboxStore(db)
    this.#notices = new Notices({ ...common, outbox: this.outbox, inbox: store })
    const handler = this.#createHandler(common, store)
    this.inbox = new Inbox({
      ...common,
      store,
      admission: new AdmissionControl({ pairing: this.pairing, now, settings: config }),
      messages: counters.received,
      isUrgent: (account, message) => isUrgentCommand(account, message.text),
      handle: (row) => handler.handle(row),
      notify: (account, adapter, message, text) => this.#notices.tell(account, adapter, message, text),
      giveUp: (row) => this.#notices.giveUp(row),
      received: (row) => this.#received(row),
    })
  }
  #routing() {
    const { bindings, conversations } = this
    return { bindings, conversations }
  }
  #createHandler(
    common: MessagingDeps & {
      readonly clock: Clock
      readonly signal: AbortSignal
      readonly background: (work: () => Promise<void>) => void
      readonly settings: Settings
    },
    store: InboxStore,
  ): MessageHandler {
    const { outbox, router, conversations } = this
    const answerer = new TurnAnswerer({ ...common, outbox })
    const commands = new ChatCommands({ ...common, answerer, router, conversations, inbox: store, newId: randomUUID })
    return new MessageHandler({
      ...common,
      answerer,
      commands,
      router,
      conversations,
      outbox,
      unanswered: (account, chat) => {
        this.counts(account.channel, account.id).unanswered = chat
      },
    })
  }

  /** Goes on with what an earlier process left, and with what waits for an account when it connects. */
  async start(): Promise<void> {
    this.#deps.connections.onChange((channel, accountId) => this.outbox.wake(channel, accountId))
    await this.outbox.recover()
    await this.inbox.resume()
  }
  /** Finds messages that nobody works on. */
  async resume(): Promise<void> {
    await this.inbox.resume()
  }
  async deleteOld(): Promise<void> {
    const { retention_days: days } = this.#deps.config
    await this.inbox.deleteOld(days)
    await this.outbox.deleteOld(days)
  }
  /** Asks in the chat that a call waits for; nothing happens for turns of other origin. */
  async askForApproval(approval: Approval): Promise<void> {
    await this.#notices.askForApproval(approval)
  }
  counts(channel: string, accountId: string): AccountCounts {
    const key = accountKey(channel, accountId)
    const counts = this.#counts.get(key) ?? {
      received: 0,
      sent: 0,
      failed: 0,
      lastMessageAt: null,
      unanswered: undefined,
    }
    this.#counts.set(key, counts)
    return counts
  }

  #received(row: InboxRow): void {
    const counts = this.counts(row.channel, row.account)
    counts.received++
    counts.lastMessageAt = row.received_at
    this.#background(() => this.#deps.hooks.emit(MessageReceived, toReceived(row)))
  }
  #settled(row: OutboxRow): void {
    const counts = this.counts(row.channel, row.account)
    if (row.state === 'sent') counts.sent++
    else counts.failed++
    this.#background(() => this.#deps.hooks.emit(MessageSent, toSent(row)))
  }
  /** Runs work that unloading waits for. */
  readonly #background = (work: () => Promise<void>): void => {
    const { run, leaving, log } = this.#deps
    run(work).catch((error: unknown) => {
      if (leaving.aborted) return
      log.error('work for a channel failed', { error: error instanceof Error ? error.message : String(error) })
    })
  }
}

function createCounters({ metrics }: Pick<MessagingDeps, 'metrics'>): {
  readonly received: Counter
  readonly sent: Counter
} {
  return {
    received: metrics.counter('svc_channel_messages_received_total', 'Messages of chat platforms, by outcome'),
    sent: metrics.counter('svc_channel_messages_sent_total', 'Messages to chat platforms, by outcome'),
  }
}
async function readFile(workspaces: Workspaces | undefined, agentId: string, path: string): Promise<Uint8Array> {
  if (!workspaces) throw new Error('the plugin that keeps files is not loaded')
  return workspaces.read(agentId, path)
}
function toReceived({ id, channel, account, message }: InboxRow) {
  const { chat, sender, text } = message
  return { id, channel, accountId: account, chatId: chat.id, senderId: sender.id, text }
}
function toSent(row: OutboxRow) {
  const state = row.state === 'sent' ? ('sent' as const) : ('dead' as const)
  return {
    id: row.id,
    channel: row.channel,
    accountId: row.account,
    chatId: row.chat,
    agentId: row.agent_id,
    state,
    error: state === 'dead' ? row.error : null,
  }
}
