import { readDeliverTarget } from '../accounts/settings.ts'
import type { ChannelTarget } from '../contract.ts'
import type { SendingAccount } from '../outbox/channel-messages.ts'
import { ServerAway, stableId } from 'svc/internal'
import { commandLine, omitUndefined, Refusal, UpstreamFailure } from 'svc/sdk'
import type { ChannelAdapter, InboundMessage } from 'svc/channels'
import type { Agent } from '../../agents/contract.ts'
import type { AcceptedTurn, Chat } from '../../chat/contract.ts'
import type { Workspaces } from '../../files/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Screening } from '../../screening/contract.ts'
import type { Label } from '../../sessions/contract.ts'
import type { Account, FindAccount } from '../accounts/account.ts'
import type { ChatCommands } from '../commands/chat-commands.ts'
import type { Connections } from '../connections/connections.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { toConversation } from '../routing/conversations.ts'
import type { Conversations } from '../routing/conversations.ts'
import type { Router } from '../routing/router.ts'
import type { AwaitedAccount } from './connection-waits.ts'
import { readAttachments } from './attachments.ts'
import type { ReadAttachments } from './attachments.ts'
import type { Handled } from './inbox.ts'
import type { InboxRow } from './schema.ts'
import type { Received, TurnAnswerer } from './turn-answerer.ts'

export interface MessageHandlerDeps {
  readonly account: FindAccount
  /** Imports the code of the channel; `undefined` when its plugin is not there. */
  readonly adapter: (channel: string) => Promise<ChannelAdapter | undefined>
  readonly answerer: TurnAnswerer
  readonly commands: ChatCommands
  readonly router: Router
  readonly conversations: Conversations
  readonly connections: Pick<Connections, 'find'>
  readonly chat: Pick<Chat, 'accept'>
  readonly outbox: Outbox
  readonly target: (to: ChannelTarget) => Promise<SendingAccount>
  readonly screening: Screening
  readonly audit: Pick<Audit, 'write'>
  readonly workspaces: () => Workspaces | undefined
  readonly settings: { readonly attachment_max_bytes: number; readonly max_attachments: number }
  /** Told what keeps a message from its answer, or a file from the agent; `undefined` when nothing does. */
  readonly unanswered: (account: Account, problem: string | undefined) => void
}

const WAIT_FOR_ADAPTER_MS = 30_000
const WAIT_FOR_CONNECTION_MS = 5_000
/** Attempts to read the files of a message; what fails in the last one is left out. */
const MAX_FILE_ATTEMPTS = 3
const MAX_NAME_CHARS = 64
const NO_AGENT = 'No agent answers here. The owner of this bot can choose one.'

/** Answers one message: a command, or a turn of the agent that the chat is bound to. */
export class MessageHandler {
  readonly #deps: MessageHandlerDeps
  constructor(deps: MessageHandlerDeps) {
    this.#deps = deps
  }

  async handle(row: InboxRow): Promise<Handled> {
    const account = await this.#deps.account(row.channel, row.account)
    if (!account) return { outcome: 'parked', reason: 'the account was removed', statements: [] }
    const adapter = await this.#deps.adapter(row.channel)
    if (!adapter) return postponed('the channel is not loaded', WAIT_FOR_ADAPTER_MS, account)
    const received: Received = { row, account, adapter, to: destinationOf(row.message) }
    if (account.settings.deliver_only === true) return this.#orLater(account, () => this.#forward(received))
    return (await this.#deps.commands.run(received)) ?? this.#ask(received)
  }

  async #ask(received: Received): Promise<Handled> {
    const { answerer, router, unanswered } = this.#deps
    const { row, account } = received
    const begun = await answerer.begun(received)
    if (begun)
      return this.#orLater(account, async () =>
        answerer.resume(await this.#answerTo(received, begun.agentId), begun.agentId),
      )
    const { agent, missing } = await router.resolve(account, row.message, row.standing)
    if (!agent) return this.#sayNobodyAnswers(received, missing)
    unanswered(account, undefined)
    await this.#sayMissing(received, agent, missing)
    await router.follow(account, row.message, row.standing, agent)
    const attachments = await this.#readAttachments(received, agent)
    if ('outcome' in attachments) return attachments
    return this.#orLater(account, async () => {
      const to = await this.#answerTo(received, agent.id)
      return answerer.answer(to, agent.id, () => this.#accept(received, agent, attachments))
    })
  }

  /** Sends a message to another chat as it is. Throws `Refusal` when that chat cannot be sent to now. */
  async #forward({ row, account }: Received): Promise<Handled> {
    const { deliver_target: target } = account.settings
    if (target === undefined)
      return { outcome: 'parked', reason: 'deliver_only is set without deliver_target', statements: [] }
    const { channel, account: id, to } = readDeliverTarget(target)
    const sender = await this.#deps.target({ channel, account: id, to })
    const { text, attachments } = row.message
    const left = attachments.map(({ name }) => `[The file ${plainName(name)} was not forwarded.]`)
    const statements = await this.#deps.outbox.add({
      id: stableId('forward', row.id),
      kind: 'answer',
      account: sender.account,
      capabilities: sender.adapter.capabilities,
      to: { chatId: to },
      text: [text, ...left].filter((each) => each !== '').join('\n\n'),
    })
    return { outcome: 'answered', agentId: '', statements }
  }
  /** Where the answer goes. Throws `Refusal` when that chat cannot be sent to now. */
  async #answerTo(received: Received, agentId: string): Promise<Received> {
    const { deliver_target: target } = received.account.settings
    if (target === undefined) return received
    const { channel, account: id, to } = readDeliverTarget(target)
    const { account, adapter } = await this.#deps.target({ channel, account: id, to, agentId })
    return { ...received, account, adapter, to: { chatId: to }, isElsewhere: true }
  }
  /** The channel of `deliver_target` may be switched off for a while. */
  async #orLater({ settings: { deliver_target: target } }: Account, work: () => Promise<Handled>): Promise<Handled> {
    try {
      return await work()
    } catch (error) {
      if (target === undefined || !(error instanceof Refusal) || error instanceof ServerAway) throw error
      const { channel, account: id } = readDeliverTarget(target)
      return postponed(`deliver_target: ${error.message}`, WAIT_FOR_ADAPTER_MS, { channel, id })
    }
  }
  /** Once in a chat for each agent that is gone, so that nobody wonders why another one answers. */
  async #sayMissing({ row, account, adapter, to }: Received, agent: Agent, missing: readonly string[]): Promise<void> {
    for (const name of missing)
      await this.#deps.outbox.send({
        id: stableId('agent gone', row.conversation, name),
        kind: 'notice',
        account,
        capabilities: adapter.capabilities,
        to,
        text: `Agent "${name}", which was to answer here, does not exist. ${agent.name} answers instead.`,
      })
  }
  /** Once in a chat. */
  async #sayNobodyAnswers({ row, account, adapter, to }: Received, missing: readonly string[]): Promise<Handled> {
    const chat = row.message.chat.title ?? row.message.chat.id
    const bindings = commandLine('channels bindings')
    this.#deps.unanswered(account, `no agent answers in chat ${chat}: set agent_name, or add a rule with ${bindings}`)
    const statements = await this.#deps.outbox.add({
      id: stableId('nobody answers', row.conversation, ...missing),
      kind: 'notice',
      account,
      capabilities: adapter.capabilities,
      to,
      text: missing.length === 0 ? NO_AGENT : `Agent "${missing.join('", "')}" does not exist. ${NO_AGENT}`,
    })
    return { outcome: 'answered', agentId: '', statements }
  }

  async #readAttachments(received: Received, agent: Agent): Promise<ReadAttachments | Handled> {
    const { row, account } = received
    const { attachments } = row.message
    if (attachments.length === 0) return { images: [], notes: [], unread: [] }
    const open = this.#deps.connections.find(account.channel, account.id)
    if (!open) return postponed('not connected', WAIT_FOR_CONNECTION_MS, account)
    const mayRetry = row.attempts < MAX_FILE_ATTEMPTS
    const failed = (name: string, error: unknown): void =>
      this.#deps.unanswered(account, `the file ${name} in chat ${row.message.chat.id} was not read: ${wordsOf(error)}`)
    const request = { attachments, agentId: agent.id, id: row.id, mayRetry, failed }
    const read = await readAttachments(this.#deps, open, request)
    if (read.unread.length > 0) await this.#nameUnread(received, read.unread)
    return read
  }
  /** The sender learns which files the agent did not get. */
  async #nameUnread({ row, account, adapter, to }: Received, unread: readonly string[]): Promise<void> {
    await this.#deps.outbox.send({
      id: stableId('unread files', row.id),
      kind: 'notice',
      account,
      capabilities: adapter.capabilities,
      to,
      text: ['Files that could not be read:', ...unread.map((each) => `- ${each}`)].join('\n'),
    })
  }

  async #accept(
    { row, account, adapter }: Received,
    agent: Agent,
    { images, notes }: ReadAttachments,
  ): Promise<AcceptedTurn> {
    const { conversations, chat } = this.#deps
    const { message } = row
    const conversation = toConversation(account, message)
    const sessionId = await conversations.session(conversation, message.chat, agent.id)
    const thinking = await conversations.thinking(conversation)
    const text = message.isForwarded === true ? `[Forwarded message]\n${message.text}` : message.text
    const said = message.chat.kind === 'group' ? `${nameOf(message)}: ${indented(text)}` : text
    return chat.accept({
      id: row.id,
      agentId: agent.id,
      sessionId,
      text: [said, ...notes].filter((each) => each !== '').join('\n\n'),
      entryPoint: 'channel',
      ...omitUndefined({ images: images.length > 0 ? images : undefined, thinking }),
      labels: await this.#labels(row, adapter, agent),
      // A group is one listener: what one of its members is told, all are.
      user: `${row.channel}:${message.chat.kind === 'group' ? message.chat.id : message.sender.id}`,
    })
  }
  /** Text of people nobody vouches for, and text that addresses the model, is text from outside. */
  async #labels(row: InboxRow, { capabilities }: ChannelAdapter, agent: Agent): Promise<readonly Label[]> {
    const { screening, audit } = this.#deps
    const { level, findings } = await screening.screen(row.message.text)
    const isSuspect = level === 'critical' || level === 'warning'
    if (level === 'critical')
      await audit.write({
        event: 'injection_suspected',
        agentId: agent.id,
        details: `a message on ${row.channel} account ${row.account}: ${findings.map(({ rule }) => rule).join(', ')}`,
      })
    const { sender, isForwarded } = row.message
    const isStranger = row.standing === 'anybody' || sender.isUnverified === true || capabilities.isPublic
    return isStranger || isForwarded === true || isSuspect ? ['ExternalNetwork'] : []
  }
}

/** For the status, which shows no secrets: what other errors say may hold one. */
function wordsOf(error: unknown): string {
  return error instanceof Refusal || error instanceof UpstreamFailure ? error.message : 'its adapter failed'
}

function postponed(reason: string, afterMs: number, { channel, id }: AwaitedAccount): Handled {
  return { outcome: 'postponed', reason, afterMs, waitsFor: { channel, id } }
}
export function destinationOf({ chat, threadId, replyContext }: InboundMessage) {
  return { chatId: chat.id, ...omitUndefined({ threadId, replyContext }) }
}
/** What others call the sender, without what could pass for another sender or a line of its own. */
function nameOf({ sender }: InboundMessage): string {
  return `[${plainName(sender.name) || plainName(sender.id)}]`
}
function plainName(name: string): string {
  return name
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}:[\]]+/gu, ' ')
    .trim()
    .slice(0, MAX_NAME_CHARS)
}
/** Only the daemon begins a line at the margin: no line of the text can pass for another sender or an attached file. */
function indented(text: string): string {
  return text.replaceAll(/\r\n|[\n\v\f\r\u0085\u2028\u2029]/g, '\n  ')
}
