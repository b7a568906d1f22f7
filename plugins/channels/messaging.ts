import { randomUUID } from 'node:crypto'
import type { ChannelAdapter } from 'svc/channels'
import { commandLine } from 'svc/sdk'
import type { PluginContext, Tokens } from 'svc/sdk'
import { homeId, messageOf, toIso, wallClock as systemClock } from 'svc/internal'
import type { Clock, Daemon, RowsInMemory, TellChange } from 'svc/internal'
import type { Agents } from '../agents/contract.ts'
import type { Approval, Approvals } from '../approvals/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Chat, SlashCommands, Turns } from '../chat/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import type { Journal } from '../journal/contract.ts'
import type { Screening } from '../screening/contract.ts'
import type { Sessions } from '../sessions/contract.ts'
import type { Account, FindAccount } from './accounts/account.ts'
import { accountKey } from './accounts/account.ts'
import { ChatCommands, isUrgentCommand } from './commands/chat-commands.ts'
import type { Settings } from './config.ts'
import type { Connections } from './connections/connections.ts'

import { MessageReceived, MessageSent } from './contract.ts'
import type { ChannelTarget } from './contract.ts'
import { Inbox } from './inbox/inbox.ts'
import { MessageHandler } from './inbox/message-handler.ts'
import { Notices } from './inbox/notices.ts'
import type { InboxRow } from './inbox/schema.ts'
import { OwnerStore } from './inbox/owners/store.ts'
import { InboxStore } from './inbox/store.ts'
import { TurnAnswerer } from './inbox/turn-answerer.ts'
import type { SendingAccount } from './outbox/channel-messages.ts'
import { Outbox } from './outbox/outbox.ts'
import type { OutboxRow } from './outbox/schema.ts'
import { OutboxStore } from './outbox/store.ts'
import type { MessageCounters } from './registrations.ts'
import { AdmissionControl } from './policies/admission.ts'
import { PairingStore } from './policies/store.ts'
import { Pairing } from './policies/pairing.ts'
import { Bindings } from './routing/bindings.ts'
import { Conversations } from './routing/conversations.ts'
import { Router } from './routing/router.ts'
import { RoutingStore } from './routing/store.ts'
import { ThreadOwners } from './routing/thread-owners.ts'

export interface MessagingDeps extends Pick<
  PluginContext<Settings, Tokens, Tokens>,
  'config' | 'db' | 'vault' | 'hooks' | 'log' | 'leaving' | 'run'
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
  readonly connections: Pick<Connections, 'find'>
  readonly daemon: Pick<Daemon, 'config'>
  readonly account: FindAccount
  /** Imports the code of the channel; `undefined` when its plugin is not there. */
  readonly adapter: (channel: string) => Promise<ChannelAdapter | undefined>
  readonly counters: MessageCounters
  /** The account that sends to a chat. Throws as `ChannelMessages.check`. */
  readonly target: (to: ChannelTarget) => Promise<SendingAccount>
  /** Hears of what another daemon on the database changed. */
  readonly follow: (topic: string, rows: RowsInMemory) => TellChange
  readonly clock?: Clock
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
  readonly #owners: ThreadOwners
  readonly #routingStore: RoutingStore
  /** By account: what kept the last message from its answer. */
  readonly #unanswered = new Map<string, string>()

  constructor(deps: MessagingDeps) {
    const { config, db, vault, audit, clock = systemClock, leaving: signal } = deps
    this.#deps = deps
    const now = (): number => clock.now()
    const nowIso = (): string => toIso(now())
    const common = { ...deps, clock, signal, background: this.#background, settings: config }
    const { counters } = deps
    this.outbox = new Outbox({
      ...common,
      store: new OutboxStore(db, deps.log),
      sends: counters.sent,
      readFile: (file) => readFile(deps.workspaces(), file.agentId, file.path),
      settled: (row) => this.#settled(row),
    })
    const follow = (topic: string) => ({ follow: (rows: RowsInMemory) => deps.follow(topic, rows) })
    this.pairing = new Pairing({
      ...common,
      vault,
      guesses: counters.guesses,
      store: new PairingStore(db, deps.log),
      ...follow('channels.people'),
    })
    const routing = new RoutingStore(db, deps.log)
    const maxBindings = config.max_bindings
    this.bindings = new Bindings({ store: routing, audit, maxBindings, now: nowIso, ...follow('channels.bindings') })
    this.#routingStore = routing
    this.#owners = new ThreadOwners({ store: routing, now, ...follow('channels.threads') })
    const forgotten = (): void => this.#owners.forgetAll()
    const conversations = { store: routing, now: nowIso, forgotten }
    this.conversations = new Conversations({ ...conversations, ...follow('channels.conversations') })
    this.router = new Router({ ...deps, ...this.#routing(), defaultAgent: config.default_agent })
    const store = new InboxStore(db, deps.log)
    this.#notices = new Notices({ ...common, outbox: this.outbox, inbox: store })
    const handler = this.#createHandler(common, store)
    this.inbox = new Inbox({
      ...common,
      store,
      owners: new OwnerStore(db),
      home: homeId(deps.daemon.config()),
      admission: new AdmissionControl({
        pairing: this.pairing,
        router: this.router,
        now,
        log: deps.log,
        settings: config,
      }),
      messages: counters.received,
      isUrgent: (account, message) => isUrgentCommand(account, message, deps.slashCommands),
      handle: (row) => handler.handle(row),
      notify: (account, adapter, message, text) => this.#notices.tell(account, adapter, message, text),
      giveUp: (row) => this.#notices.giveUp(row),
      received: (row) => this.#received(row),
    })
  }
  #routing() {
    const { bindings, conversations } = this
    return { bindings, conversations, owners: this.#owners }
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
    const unanswered = (account: Account, problem: string | undefined): void => this.#note(account, problem)
    const answerer = new TurnAnswerer({ ...common, outbox, unanswered })
    const commands = new ChatCommands({
      ...common,
      answerer,
      router,
      conversations,
      inbox: store,
      outbox,
      newId: randomUUID,
    })
    return new MessageHandler({
      ...common,
      answerer,
      commands,
      router,
      conversations,
      outbox,
      unanswered,
    })
  }

  /** Goes on with what waits for an account, once that is connected. */
  wake(channel: string, accountId: string): void {
    this.outbox.wake(channel, accountId)
    if (this.#deps.connections.find(channel, accountId))
      this.#background(() => this.inbox.connected(channel, accountId))
  }
  /** Goes on with messages that nobody works on, such as those of an earlier process. */
  async resume(): Promise<void> {
    await this.inbox.resume()
    this.outbox.refresh()
  }
  async deleteOld(): Promise<void> {
    const { retention_days: days } = this.#deps.config
    await this.inbox.deleteOld(days)
    await this.outbox.deleteOld(days)
    const now = toIso((this.#deps.clock ?? systemClock).now())
    await this.#routingStore.commit([this.#routingStore.deleteThreadOwners(now)])
  }
  /** Lets another daemon on the database go on with what is left. */
  async close(): Promise<void> {
    await this.inbox.close()
  }
  /** Asks in the chat that a call waits for; nothing happens for turns of other origin. */
  async askForApproval(approval: Approval): Promise<void> {
    await this.#notices.askForApproval(approval)
  }
  /** What the operator should know of an account beside its connection. */
  async warnings(account: Account): Promise<readonly string[]> {
    const { allowed_users: users, operators } = account.settings
    const warnings: string[] = []
    if (users.includes('*'))
      warnings.push('open to everybody: allowed_users contains "*", so strangers spend tokens and may use the tools')
    else if (users.length + operators.length === 0 && (await this.pairing.count(account)) === 0)
      warnings.push(
        `open to nobody: add allowed_users, or pair somebody with ${commandLine(`channels pair ${account.channel}`)}`,
      )
    if (account.settings.deliver_only === true && account.settings.deliver_target === undefined)
      warnings.push('deliver_only needs deliver_target: messages are put aside until it is set')
    const missing = await this.router.missingOf(account)
    if (missing.length > 0)
      warnings.push(
        `names agents that do not exist: ${missing.join(', ')}; create them, or change agent_name or the bindings ` +
          `(${commandLine('channels bindings')})`,
      )
    const problem = this.#unanswered.get(accountKey(account.channel, account.id))
    return problem === undefined ? warnings : [...warnings, problem]
  }
  #note({ channel, id }: Account, problem: string | undefined): void {
    const key = accountKey(channel, id)
    if (problem === undefined) {
      this.#unanswered.delete(key)
      return
    }
    if (this.#unanswered.get(key) !== problem) this.#deps.log.warn(`channel ${key}: ${problem}`)
    this.#unanswered.set(key, problem)
  }

  #received(row: InboxRow): void {
    this.#background(() => this.#deps.hooks.emit(MessageReceived, toReceived(row)))
  }
  #settled(row: OutboxRow): void {
    this.#background(() => this.#deps.hooks.emit(MessageSent, toSent(row)))
  }
  /** Runs work that unloading waits for. */
  readonly #background = (work: () => Promise<void>): void => {
    const { run, leaving, log } = this.#deps
    run(work).catch((error: unknown) => {
      if (leaving.aborted) return
      log.error('work for a channel failed', { error: messageOf(error) })
    })
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
