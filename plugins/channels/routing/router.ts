import { matchesWildcard } from 'svc/internal'
import type { InboundMessage } from 'svc/channels'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Account } from '../accounts/account.ts'
import type { Standing } from '../policies/people.ts'
import { withDefaults } from '../policies/defaults.ts'
import { placeOf } from './bindings.ts'
import type { Bindings } from './bindings.ts'
import { toConversation } from './conversations.ts'
import type { Conversations } from './conversations.ts'
import { firstName, isAddressed } from './thread-owners.ts'
import type { ThreadOwners } from './thread-owners.ts'

export interface RouterDeps {
  readonly agents: Pick<Agents, 'find' | 'findByName' | 'list'>
  readonly bindings: Bindings
  readonly conversations: Conversations
  readonly owners: ThreadOwners
  /** Name or id of the agent that answers where nothing else says so. */
  readonly defaultAgent: string | undefined
}

/** Finds the agent that answers a message. */
export class Router {
  readonly #deps: RouterDeps
  constructor(deps: RouterDeps) {
    this.#deps = deps
  }

  /**
   * The agent that the message begins with, the one that somebody chose in the chat, the one that answers in the
   * thread, that of the most specific binding, that of the account, the one that the message names, the default one:
   * the first of these that exists and takes this channel.
   */
  async route(
    account: Account,
    message: InboundMessage,
    standing: Exclude<Standing, 'nobody'>,
  ): Promise<Agent | undefined> {
    return (await this.resolve(account, message, standing)).agent
  }
  /** The same with the names of agents that were to answer and do not exist any more. */
  async resolve(
    account: Account,
    message: InboundMessage,
    standing: Exclude<Standing, 'nobody'>,
  ): Promise<{ readonly agent: Agent | undefined; readonly missing: readonly string[] }> {
    const missing: string[] = []
    const agent = await this.#find(account, message, standing, (name) => missing.push(name))
    return { agent, missing }
  }
  /** The agent that a message begins with, as in `@researcher look`: it answers this message only. */
  async addressed(account: Account, message: InboundMessage, standing: Standing): Promise<Agent | undefined> {
    const name = firstName(message.text)
    return name === undefined ? undefined : this.choosable(account, message, standing, name)
  }
  /** Whether a message in a thread is for the agent that answers there, although it does not mention the bot. */
  async isFollowed(account: Account, message: InboundMessage, standing: Standing): Promise<boolean> {
    if (withDefaults(account.settings).thread_follow_secs === 0) return false
    const owner = await this.#deps.owners.find(toConversation(account, message))
    if (owner === undefined) return false
    return !isAddressed(message.text) || (await this.addressed(account, message, standing)) !== undefined
  }
  /**
   * The agent that answers in a thread goes on answering there. Another one that was addressed does not take it over.
   */
  async follow(
    account: Account,
    message: InboundMessage,
    standing: Exclude<Standing, 'nobody'>,
    agent: Agent,
  ): Promise<void> {
    const { thread_follow_secs: seconds } = withDefaults(account.settings)
    if (message.chat.kind !== 'group' || message.threadId === undefined || seconds === 0) return
    const { owners } = this.#deps
    const conversation = toConversation(account, message)
    const owner = await owners.find(conversation)
    const isGuest = owner !== undefined && owner !== agent.id && firstName(message.text) !== undefined
    const isOneTime = isGuest && (await this.addressed(account, message, standing))?.id === agent.id
    if (!isOneTime) await owners.claim(conversation, agent.id, seconds)
  }
  /** Names that bindings and the account give, of agents that do not exist. */
  async missingOf(account: Account): Promise<readonly string[]> {
    const bound = (await this.#deps.bindings.list()).filter(
      ({ match_rule: { channel, account_id: id } }) =>
        (channel === undefined || channel === account.channel) && (id === undefined || id === account.id),
    )
    const { agent_name: own } = account.settings
    const names = new Set([...bound.map(({ agent }) => agent), ...(own === undefined ? [] : [own])])
    const missing: string[] = []
    for (const name of names) if (!(await this.#named(name))) missing.push(name)
    return missing
  }
  async #find(
    account: Account,
    message: InboundMessage,
    standing: Exclude<Standing, 'nobody'>,
    missing: (name: string) => void,
  ): Promise<Agent | undefined> {
    const addressed = await this.addressed(account, message, standing)
    if (addressed) return addressed
    const { conversations, owners } = this.#deps
    const conversation = toConversation(account, message)
    for (const id of [await conversations.chosen(conversation), await owners.find(conversation)]) {
      const found = await this.#usable(id, account.channel)
      if (found) return found
    }
    for (const name of await this.#candidates(account, message)) {
      const agent = await this.#named(name)
      if (!agent) missing(name)
      else if (takesChannel(agent, account.channel)) return agent
    }
    const named =
      message.agent === undefined ? undefined : await this.choosable(account, message, standing, message.agent)
    return named ?? this.#usable(this.#deps.defaultAgent, account.channel)
  }
  async #candidates(account: Account, message: InboundMessage): Promise<readonly string[]> {
    const bound = await this.#deps.bindings.match(placeOf(account, message))
    const { agent_name: own } = account.settings
    return own === undefined ? bound : [...bound, own]
  }

  /**
   * The agents that a person may choose in a chat: those of its bindings and of the account, and those whose manifest
   * names the channel. Operators may choose every agent that takes the channel.
   */
  async choices(account: Account, message: InboundMessage, standing: Standing): Promise<readonly Agent[]> {
    const { agents, defaultAgent } = this.#deps
    const open = new Set([...(await this.#candidates(account, message)), defaultAgent])
    return (await agents.list()).filter((agent) => {
      if (!takesChannel(agent, account.channel)) return false
      return standing === 'operator' || agent.manifest.channels.length > 0 || open.has(agent.name) || open.has(agent.id)
    })
  }
  async choosable(
    account: Account,
    message: InboundMessage,
    standing: Standing,
    name: string,
  ): Promise<Agent | undefined> {
    const lower = name.toLowerCase()
    return (await this.choices(account, message, standing)).find(
      (agent) => agent.name.toLowerCase() === lower || agent.id === lower,
    )
  }

  async #usable(nameOrId: string | undefined, channel: string): Promise<Agent | undefined> {
    if (nameOrId === undefined) return undefined
    const agent = await this.#named(nameOrId)
    return agent && takesChannel(agent, channel) ? agent : undefined
  }
  async #named(nameOrId: string): Promise<Agent | undefined> {
    const { agents } = this.#deps
    return (await agents.findByName(nameOrId)) ?? (isId(nameOrId) ? agents.find(nameOrId) : undefined)
  }
}

const isId = (text: string): boolean => /^[0-9a-f-]{36}$/i.test(text)

/** Whether the manifest of an agent lets it talk on a channel. An empty list is every channel. */
export function takesChannel({ manifest }: Pick<Agent, 'manifest'>, channel: string): boolean {
  return manifest.channels.length === 0 || manifest.channels.some((pattern) => matchesWildcard(pattern, channel))
}
