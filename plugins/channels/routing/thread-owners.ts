import { toIso } from 'svc/internal'
import type { RowsInMemory, TellChange } from 'svc/internal'
import type { Conversation } from './conversations.ts'
import type { RoutingStore } from './store.ts'

const MAX_CACHED = 10_000
/** What is addressed to somebody: `@name`, or an id as Slack and Discord write it. */
const ADDRESSED = /(?:^|\s)(?:@[\p{L}\p{N}_]|<@)/u
const FIRST_NAME = /^\s*@([\p{L}\p{N}_.-]{1,128})/u

/** Whether a text, without the mention of the bot, is addressed to somebody. */
export function isAddressed(text: string): boolean {
  return ADDRESSED.test(text.slice(0, 1_000))
}
/** The name that a text begins with, such as `@researcher`. */
export function firstName(text: string): string | undefined {
  return FIRST_NAME.exec(text)?.[1]?.replace(/[.-]+$/, '')
}

export interface ThreadOwnersDeps {
  readonly store: RoutingStore
  readonly now: () => number
  /** Hears of threads that another daemon gave to an agent. */
  readonly follow: (rows: RowsInMemory) => TellChange
}
interface Owner {
  readonly agentId: string
  readonly untilMs: number
}

/** The agent that was addressed in a thread and goes on answering there for a while. */
export class ThreadOwners {
  readonly #deps: ThreadOwnersDeps
  readonly #known = new Map<string, Owner | undefined>()
  readonly #tell: TellChange
  /** What was read before a change is not kept after it. */
  #changes = 0
  constructor(deps: ThreadOwnersDeps) {
    this.#deps = deps
    this.#tell = deps.follow({
      changed: (key) => {
        this.#changes++
        this.#known.delete(key)
      },
      missed: () => this.forgetAll(),
    })
  }

  /** The id of the agent; `undefined` outside of threads and after the time. */
  async find(conversation: Conversation): Promise<string | undefined> {
    if (conversation.thread === '') return undefined
    const key = keyOf(conversation)
    const owner = this.#known.has(key) ? this.#known.get(key) : await this.#read(key, conversation)
    return owner && owner.untilMs > this.#deps.now() ? owner.agentId : undefined
  }
  async claim(conversation: Conversation, agentId: string, seconds: number): Promise<void> {
    if (conversation.thread === '' || seconds === 0) return
    const { store, now } = this.#deps
    const untilMs = now() + seconds * 1000
    await store.commit([
      {
        ...store.claimThread(conversation, agentId, toIso(untilMs)),
        written: () => this.#remember(keyOf(conversation), { agentId, untilMs }),
      },
      ...this.#tell(keyOf(conversation)),
    ])
  }
  /** The agent was removed. */
  forgetAll(): void {
    this.#changes++
    this.#known.clear()
  }

  async #read(key: string, conversation: Conversation): Promise<Owner | undefined> {
    const changes = this.#changes
    const row = await this.#deps.store.threadOwner(conversation)
    const owner = row && { agentId: row.agent_id, untilMs: Date.parse(row.until) }
    if (changes === this.#changes) this.#remember(key, owner)
    return owner
  }
  #remember(key: string, owner: Owner | undefined): void {
    this.#known.delete(key)
    this.#known.set(key, owner)
    if (this.#known.size <= MAX_CACHED) return
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest)
      return
    }
  }
}

function keyOf({ channel, account, chat, thread }: Conversation): string {
  return [channel, account, chat, thread].join('\u0000')
}
