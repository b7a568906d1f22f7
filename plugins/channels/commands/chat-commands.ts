import { describeActor, parseAssignments, runAs } from 'svc/internal'
import type { Actor } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Logger, Principal } from 'svc/sdk'
import type { InboundMessage } from 'svc/channels'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Approval, Approvals } from '../../approvals/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Chat, SlashCommands } from '../../chat/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import { accountKey } from '../accounts/account.ts'
import type { Account } from '../accounts/account.ts'
import type { Handled } from '../inbox/inbox.ts'
import { plainRefusal } from '../inbox/plain-words.ts'
import type { InboxStore } from '../inbox/store.ts'
import type { Received, TurnAnswerer } from '../inbox/turn-answerer.ts'
import { resultMessageId } from '../outbox/message.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { withDefaults } from '../policies/defaults.ts'
import { toConversation } from '../routing/conversations.ts'
import type { Conversations } from '../routing/conversations.ts'
import type { Router } from '../routing/router.ts'
import { readCommand } from './text.ts'

export interface ChatCommandsDeps {
  readonly answerer: TurnAnswerer
  readonly router: Router
  readonly conversations: Conversations
  readonly inbox: Pick<InboxStore, 'find'>
  readonly outbox: Pick<Outbox, 'destination'>
  readonly agents: Pick<Agents, 'find'>
  readonly chat: Pick<Chat, 'stop' | 'retry'>
  readonly sessions: Pick<Sessions, 'lastFailed'>
  readonly audit: Pick<Audit, 'entry'>
  readonly slashCommands: SlashCommands
  readonly approvals: () => Approvals | undefined
  readonly log: Pick<Logger, 'info'>
  readonly newId: () => string
  /** Aborts when the plugin begins to unload. */
  readonly signal: AbortSignal
}

interface Invocation {
  readonly received: Received
  readonly argument: string
  readonly agent: Agent | undefined
  readonly sessionId: string | undefined
}
type Answer = string | Handled
interface Command {
  readonly takes?: string
  readonly does: string
  /** Answered at once, although the conversation waits for an agent. */
  readonly isUrgent?: boolean
  /** Only for operators of the account; with `argument` only if it has one. */
  readonly operators?: 'always' | 'argument'
  readonly needsAgent?: boolean
  readonly run: (commands: ChatCommands, invocation: Invocation) => Promise<Answer> | Answer
}

/** A command that a conversation over the API has too. */
const shared = (does: string, more: Partial<Command> = {}): Command => ({
  does,
  needsAgent: true,
  run: (commands, invocation) => commands.runShared(invocation),
  ...more,
})
const commands: Readonly<Record<string, Command>> = {
  help: { does: 'this list', isUrgent: true, run: (self, { received }) => self.help(received) },
  new: {
    does: 'a new, empty conversation',
    needsAgent: true,
    run: (self, invocation) => self.begin(invocation),
  },
  stop: {
    does: 'stop the answer that is being written',
    isUrgent: true,
    needsAgent: true,
    run: (self, { agent, sessionId }) => self.stop(agent, sessionId),
  },
  status: {
    does: 'who answers here, and what it does now',
    isUrgent: true,
    run: (self, invocation) => self.status(invocation),
  },
  agents: { does: 'the agents to choose from', isUrgent: true, run: (self, { received }) => self.agents(received) },
  agent: {
    takes: '<name>',
    does: 'let this agent answer here',
    run: (self, { received, argument }) => self.choose(received, argument),
  },
  model: shared('the model of the agent; with a name, use that one', { takes: '[name]', operators: 'argument' }),
  sessions: {
    takes: '[number]',
    does: 'the sessions of the agent; with a number, a label or an id, go on in that one here',
    operators: 'always',
    needsAgent: true,
    run: (self, invocation) => self.sessions(invocation),
  },
  usage: shared('tokens and cost of this conversation', { isUrgent: true }),
  compact: shared('summarise older messages'),
  retry: {
    does: 'ask the last message that failed again',
    needsAgent: true,
    run: (self, invocation) => self.retry(invocation),
  },
  think: {
    takes: '[on|off]',
    does: 'extended thinking, for models that can',
    run: (self, { received, argument }) => self.think(received, argument),
  },
  drop: shared('take away the last message that failed'),
  models: shared('the models that can be used; with a provider, all of its models', {
    takes: '[provider]',
    operators: 'always',
  }),
  providers: shared('the providers, and whether they have a key', { operators: 'always' }),
  approvals: {
    does: 'what of this chat waits for approval',
    isUrgent: true,
    operators: 'always',
    run: (self, { received }) => self.approvals(received),
  },
  approve: {
    takes: '<id>',
    does: 'let exactly this be done, once',
    isUrgent: true,
    operators: 'always',
    run: (self, { received, argument }) => self.decide(received, 'approve', argument),
  },
  reject: {
    takes: '<id> [reason]',
    does: 'do not let this be done',
    isUrgent: true,
    operators: 'always',
    run: (self, { received, argument }) => self.decide(received, 'reject', argument),
  },
}
const aliases: Readonly<Record<string, string>> = { start: 'help', reset: 'new' }

type Added = Pick<SlashCommands, 'added'>

/** The command of another plugin, which only operators may use when it leaves something behind. */
function findAdded(slashCommands: Added, name: string): Command | undefined {
  const found = slashCommands.added().find((each) => each.name === name || each.aliases?.includes(name))
  return found && shared(found.description, omitUndefined({ takes: found.takes }))
}

function findCommand({ settings }: Account, message: Parameters<typeof readCommand>[0], slashCommands: Added) {
  const read = readCommand(message)
  if (!read) return undefined
  const { commands: enabled } = withDefaults(settings)
  const name = aliases[read.name] ?? read.name
  const command = Object.hasOwn(commands, name) ? commands[name] : findAdded(slashCommands, name)
  const isOn = enabled === 'all' || (enabled !== 'off' && enabled.includes(name))
  return command && isOn ? { name, command, argument: read.argument } : undefined
}

/** Whether a message is a command that is answered beside the conversation. */
export function isUrgentCommand(account: Account, message: InboundMessage, slashCommands: Added): boolean {
  return findCommand(account, message, slashCommands)?.command.isUrgent === true
}

/** Commands that people send in a chat. What is not a command goes to the agent. */
export class ChatCommands {
  readonly #deps: ChatCommandsDeps
  constructor(deps: ChatCommandsDeps) {
    this.#deps = deps
  }

  /** `undefined` when the message is no command. */
  async run(received: Received): Promise<Handled | undefined> {
    const { row, account } = received
    const found = findCommand(account, row.message, this.#deps.slashCommands)
    if (!found) return undefined
    const answer = await this.#answer(received, found.command, found.argument)
    if (typeof answer !== 'string') return answer
    return { outcome: 'answered', agentId: '', statements: await this.#deps.answerer.say(received, 'command', answer) }
  }
  async #answer(received: Received, command: Command, argument: string): Promise<Answer> {
    const { row, account } = received
    const needsOperator = command.operators === 'always' || (command.operators === 'argument' && argument !== '')
    if (needsOperator && row.standing !== 'operator') return 'Only an operator of this bot may do this.'
    const agent = await this.#deps.router.route(account, row.message, row.standing)
    if (command.needsAgent === true && !agent) return 'No agent answers here.'
    const conversation = toConversation(account, row.message)
    const sessionId = agent && (await this.#deps.conversations.session(conversation, row.message.chat, agent.id))
    try {
      return await runAs(actorOf(received), () => command.run(this, { received, argument, agent, sessionId }))
    } catch (error) {
      // What other plugins refuse while everything unloads is no answer.
      if (error instanceof Refusal && this.#deps.signal.aborted) return { outcome: 'released' }
      if (error instanceof Refusal) return this.#refused(received, error)
      throw error
    }
  }

  #refused({ row, account }: Received, error: Refusal): string {
    if (row.standing === 'operator') return error.message
    const { channel, id } = account
    this.#deps.log.info(`channel ${accountKey(channel, id)}: a command in a chat was refused: ${error.message}`)
    return plainRefusal(error)
  }

  help({ account, adapter, row }: Received): string {
    const { slashCommands } = this.#deps
    const own = Object.entries(commands).map(([name, { takes, does, operators }]) => ({ name, takes, does, operators }))
    const others = slashCommands.added().filter(({ name }) => !Object.hasOwn(commands, name))
    const added = others.map(({ name, takes, description }) => ({
      name,
      takes,
      does: description,
      operators: undefined,
    }))
    const lines = [...own, ...added].flatMap(({ name, takes, does, operators }) => {
      if (
        !findCommand(account, { text: `/${name}` }, slashCommands) ||
        (operators === 'always' && row.standing !== 'operator')
      )
        return []
      return [`/${name}${takes === undefined ? '' : ` ${takes}`} – ${does}`]
    })
    const all = ['Write a message to talk to the agent.', ...lines]
    // Each line is a message there, and the server takes one in two seconds.
    return adapter.capabilities.dialect === 'irc' ? all.join(' | ') : all.join('\n\n')
  }
  async begin({ received, agent }: Invocation): Promise<string> {
    if (!agent) return 'No agent answers here.'
    const conversation = toConversation(received.account, received.row.message)
    await this.#deps.conversations.moveTo(conversation, agent.id, this.#deps.newId())
    return 'A new conversation begins.'
  }
  /** The list names conversations of other people too, so it is for operators. */
  async sessions(invocation: Invocation): Promise<string> {
    const { conversations, slashCommands } = this.#deps
    const { received, agent, argument } = invocation
    if (argument === '' || !agent) return this.runShared(invocation)
    const session = await slashCommands.findSession(agent.id, argument)
    await conversations.moveTo(toConversation(received.account, received.row.message), agent.id, session.id)
    return `This chat goes on in session ${session.id}${session.title === '' ? '' : `: ${session.title}`}.`
  }
  async think({ account, row }: Received, argument: string): Promise<string> {
    const setting = argument.toLowerCase()
    if (!['', 'on', 'off'].includes(setting)) return 'Say /think on or /think off.'
    const { conversations } = this.#deps
    const conversation = toConversation(account, row.message)
    const isOn = setting === '' ? (await conversations.thinking(conversation)) !== true : setting === 'on'
    await conversations.setThinking(conversation, isOn)
    return `Extended thinking is ${isOn ? 'on' : 'off'} for models that can.`
  }
  async stop(agent: Agent | undefined, sessionId: string | undefined): Promise<string> {
    if (!agent) return 'No agent answers here.'
    return (await this.#deps.chat.stop(agent.id, sessionId)) ? 'Stopped.' : 'Nothing is being answered.'
  }
  status({ received, agent }: Invocation): string {
    const { row } = received
    if (!agent) return 'No agent answers here.'
    const role = row.standing === 'operator' ? 'an operator' : 'a user'
    return `Agent: ${agent.name} (${agent.state})\n\nYou are ${role} here; your id is ${row.message.sender.id}.`
  }
  async agents({ account, row }: Received): Promise<string> {
    const { router } = this.#deps
    const [all, present] = await Promise.all([
      router.choices(account, row.message, row.standing),
      router.route(account, row.message, row.standing),
    ])
    if (all.length === 0) return 'There is no agent to choose.'
    const lines = all.map(({ id, name }) => `- ${name}${id === present?.id ? ' (answers here)' : ''}`)
    return [...lines, '', 'Choose one with /agent <name>.'].join('\n')
  }
  async choose(received: Received, name: string): Promise<string> {
    const { router, conversations, audit } = this.#deps
    const { account, row } = received
    if (name === '') return this.agents(received)
    const agent = await router.choosable(account, row.message, row.standing, name)
    if (!agent) return `There is no agent "${name.slice(0, 100)}" to choose here. /agents lists them.`
    const conversation = toConversation(account, row.message)
    const where = `${account.channel} account ${account.id}, chat ${conversation.chat}`
    const details = `agent "${agent.name}" was chosen on ${where}`
    await conversations.choose(conversation, agent.id, [
      audit.entry({ event: 'channel_changed', agentId: agent.id, details }),
    ])
    return `${agent.name} answers here from now on.`
  }
  async runShared({ received, agent, sessionId }: Invocation): Promise<string> {
    if (!agent) return 'No agent answers here.'
    const { row } = received
    const conversation = { agentId: agent.id, sessionId, principal: principalOf(received) }
    return this.#deps.slashCommands.run(conversation, row.message.text.replace(/^(\/\w+)@\w+/, '$1'))
  }
  async retry({ received, agent, sessionId }: Invocation): Promise<Answer> {
    const { answerer, sessions, chat } = this.#deps
    const begun = await answerer.begun(received)
    if (begun) return answerer.resume(received, begun.agentId)
    const failed = sessionId === undefined ? undefined : await sessions.lastFailed(sessionId)
    if (!agent || failed === undefined) return 'No message of this conversation has failed.'
    return answerer.answer(received, agent.id, () => chat.retry(failed, 'channel', received.row.id))
  }

  async approvals(received: Received): Promise<string> {
    const waiting = await this.#waiting(received)
    if (waiting.length === 0) return 'Nothing of this chat waits for approval.'
    return waiting
      .map(({ id, summary, form }) => {
        const fields = (form?.fields ?? []).map(({ name }) => ` ${name}=…`).join('')
        return `${summary}\n\n/approve ${id}${fields}\n\n/reject ${id}`
      })
      .join('\n\n')
  }
  /** Behind the id `name=value` fills in a form, or stands why it is rejected. */
  async decide(received: Received, verb: 'approve' | 'reject', argument: string): Promise<string> {
    const [id = '', rest = ''] = argument.split(/\s+(.*)/s, 2)
    const found =
      id === '' ? [] : (await this.#waiting(received)).filter((each) => each.id.startsWith(id.toLowerCase()))
    const [approval] = found
    if (found.length > 1) return `${found.length} requests begin with ${id}: give more of the id.`
    if (!approval)
      return id === '' ? this.approvals(received) : 'Nothing of this chat waits for approval under this id.'
    const by = {
      name: describeActor(actorOf(received)),
      person: `${received.row.channel}:${received.row.message.sender.id}`,
      inOwnChat: await this.#isOwn(received, approval),
    }
    const approvals = this.#deps.approvals()
    const content = approval.form && parseAssignments(rest)
    const decided = await (verb === 'approve'
      ? approvals?.approve(approval.id, by, 'once', content)
      : approvals?.reject(approval.id, by, rest))
    if (decided?.state === 'pending')
      return `Approved by you; a second person has to approve it too: ${approval.summary}`
    return `${decided?.state === 'approved' ? 'Approved, once' : 'Rejected'}: ${approval.summary}`
  }
  /** What waits of the turns that this chat asked for, and what it was asked because nobody else answered. */
  async #waiting(received: Received): Promise<readonly Approval[]> {
    const { approvals } = this.#deps
    const pending = ((await approvals()?.list()) ?? []).filter(({ state }) => state === 'pending')
    if (pending.length === 0) return []
    const escalated = await this.#escalated(received)
    const found: Approval[] = []
    for (const approval of pending)
      if (escalated.has(approval.id) || (await this.#isOwn(received, approval))) found.push(approval)
    return found
  }
  async #isOwn({ row }: Received, { turnId }: Approval): Promise<boolean> {
    return turnId !== '' && (await this.#deps.inbox.find(turnId))?.conversation === row.conversation
  }
  /** Requests whose question the outbox has for exactly this chat of this account. */
  async #escalated({ row }: Received): Promise<ReadonlySet<string>> {
    const { approvals, outbox } = this.#deps
    const found = new Set<string>()
    for (const { id, approvalId } of (await approvals()?.escalations()) ?? []) {
      const sent = await outbox.destination(resultMessageId(id))
      if (sent?.channel === row.channel && sent.account === row.account && sent.chat === row.message.chat.id)
        found.add(approvalId)
    }
    return found
  }
}

function actorOf({ row }: Received): Actor {
  const { sender } = row.message
  return { kind: 'channel', label: `${row.channel} user`, id: sender.id, name: sender.name }
}
/** An operator of the account may do what lasts, such as changing the model; others may only talk. */
function principalOf(received: Received): Principal {
  const { row } = received
  if (row.standing === 'operator') return { kind: 'operator' }
  const { id, name } = row.message.sender
  return { kind: 'channel', label: `${row.channel} user`, title: 'A person in a chat', id, name }
}
