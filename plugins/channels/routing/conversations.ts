import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import type { RowsInMemory, TellChange } from 'svc/internal'
import type { Statement } from 'svc/sdk'
import type { InboundMessage } from 'svc/channels'
import type { Account } from '../accounts/account.ts'
import { withDefaults } from '../policies/defaults.ts'
import type { RoutingStore } from './store.ts'

/** A chat, or a thread of it, with one bot. */
export interface Conversation {
  readonly channel: string
  readonly account: string
  readonly chat: string
  /** Empty outside of threads. */
  readonly thread: string
}
export interface ConversationsDeps {
  readonly store: RoutingStore
  readonly now: () => string
  /** Hears of what another daemon changed. */
  readonly follow: (rows: RowsInMemory) => TellChange
  /** Told that an agent was removed. */
  readonly forgotten?: () => void
}

const MAX_CACHED = 10_000
export function toConversation(
  account: Account,
  { chat, threadId }: Pick<InboundMessage, 'chat' | 'threadId'>,
): Conversation {
  const thread = withDefaults(account.settings).threading ? (threadId ?? '') : ''
  return { channel: account.channel, account: account.id, chat: chat.id, thread }
}
const keyOf = ({ channel, account, chat, thread }: Conversation): string =>
  [channel, account, chat, thread].join('\u0000')

/** The session of each conversation and agent, and the agents that people chose. */
export class Conversations {
  readonly #deps: ConversationsDeps
  readonly #sessions = new Map<string, string>()
  readonly #chosen = new Map<string, string | undefined>()
  readonly #thinking = new Map<string, boolean | undefined>()
  readonly #tell: TellChange
  /** What was read before a change is not kept after it. */
  #changes = 0
  constructor(deps: ConversationsDeps) {
    this.#deps = deps
    // Which conversation it was matters little: another daemon that has to do with the same one is rare.
    this.#tell = deps.follow(() => this.#forgetAll())
  }
  #forgetAll(): void {
    this.#changes++
    this.#sessions.clear()
    this.#chosen.clear()
    this.#thinking.clear()
    this.#deps.forgotten?.()
  }
  async #remembered<T>(cache: Map<string, T>, key: string, read: () => Promise<T>): Promise<T> {
    const cached = cache.get(key)
    if (cached !== undefined || cache.has(key)) return cached as T
    const changes = this.#changes
    const found = await read()
    if (changes === this.#changes) remember(cache, key, found)
    return found
  }

  /** The session in which an agent talks in a conversation; made when it is missing. */
  async session(conversation: Conversation, chat: InboundMessage['chat'], agentId: string): Promise<string> {
    const key = `${keyOf(conversation)}\u0000${agentId}`
    return this.#remembered(
      this.#sessions,
      key,
      async () =>
        (await this.#deps.store.session(conversation, agentId)) ?? (await this.#create(conversation, chat, agentId)),
    )
  }
  async #create(
    conversation: Conversation,
    { kind, title = '' }: InboundMessage['chat'],
    agentId: string,
  ): Promise<string> {
    const { store, now } = this.#deps
    await store.insertConversation(conversation, { agentId, sessionId: randomUUID(), kind, title, startedAt: now() })
    // A command beside the conversation may have made it at the same time.
    return v.parse(v.string(), await store.session(conversation, agentId))
  }
  /** From now on the agent answers in this session. */
  async moveTo(conversation: Conversation, agentId: string, sessionId: string): Promise<void> {
    const { store } = this.#deps
    const written = (): void => remember(this.#sessions, `${keyOf(conversation)}\u0000${agentId}`, sessionId)
    await store.commit([
      { ...store.moveConversation(conversation, agentId, sessionId), written },
      ...this.#tell(keyOf(conversation)),
    ])
  }

  /** The id of the agent that somebody chose for a conversation. */
  async chosen(conversation: Conversation): Promise<string | undefined> {
    return this.#remembered(this.#chosen, keyOf(conversation), () => this.#deps.store.chosenAgent(conversation))
  }
  async choose(conversation: Conversation, agentId: string, also: readonly Statement[]): Promise<void> {
    const { store } = this.#deps
    const written = (): void => remember(this.#chosen, keyOf(conversation), agentId)
    await store.commit([
      { ...store.chooseAgent(conversation, agentId), written },
      ...also,
      ...this.#tell(keyOf(conversation)),
    ])
  }

  /** Whether somebody switched extended thinking on or off in a conversation. */
  async thinking(conversation: Conversation): Promise<boolean | undefined> {
    return this.#remembered(this.#thinking, keyOf(conversation), () => this.#deps.store.thinking(conversation))
  }
  async setThinking(conversation: Conversation, isOn: boolean): Promise<void> {
    const { store } = this.#deps
    const written = (): void => remember(this.#thinking, keyOf(conversation), isOn)
    await store.commit([{ ...store.setThinking(conversation, isOn), written }, ...this.#tell(keyOf(conversation))])
  }

  /** The chats of an account in which an agent was spoken to, newest first. */
  chatsOf(agentId: string, channel: string, account: string) {
    return this.#deps.store.chatsOf(agentId, channel, account)
  }
  /** Statements for the batch that removes an agent. */
  forgetAgent(agentId: string): readonly Statement[] {
    const written = (): void => this.#forgetAll()
    return [
      ...this.#deps.store.forgetAgent(agentId).map((statement) => ({ ...statement, written })),
      ...this.#tell(agentId),
    ]
  }
}

function remember<T>(cache: Map<string, T>, key: string, value: T): void {
  cache.delete(key)
  cache.set(key, value)
  if (cache.size <= MAX_CACHED) return
  for (const oldest of cache.keys()) {
    cache.delete(oldest)
    return
  }
}
