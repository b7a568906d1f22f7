import { hash, randomUUID } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import type { Block, Message, Sessions } from '../sessions/contract.ts'
import type { Conversation, SpokenMessage } from './decode.ts'
import type { ConversationStore } from './store.ts'

/** The session of a turn, and what to do once it is answered. */
export interface Place {
  readonly sessionId: string
  answered(text: string): Promise<void>
}
export interface ConversationDeps {
  readonly store: ConversationStore
  readonly sessions: Sessions
  readonly now: () => string
}
export interface Caller {
  readonly session: string | undefined
  readonly user: string | undefined
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const MAX_COMPARED = 1000

/**
 * Decides in which session a request is answered. Most clients of this API keep the conversation and send all of it
 * each time, and the agent keeps one as well:
 *
 * - A request that names a session (`X-Svc-Session`) goes there, and only its last message is new.
 * - One message, or a history that matches the end of the agent's session, continues the agent's session (or that of
 *   the `user`, when one is named).
 * - Any other history, or instructions of its own, is a conversation of the client. It is answered in a session with
 *   exactly that history, which is found again by its content. The agent's own session is neither read nor written.
 */
export class Conversations {
  readonly #deps: ConversationDeps
  constructor(deps: ConversationDeps) {
    this.#deps = deps
  }

  async place(agent: Agent, { session, user }: Caller, conversation: Conversation): Promise<Place> {
    if (session !== undefined) return { sessionId: await this.#named(agent, session), answered: nothing }
    const { instructions, history, question } = conversation
    const own = user === undefined ? agent.sessionId : derived(agent.id, 'user', user)
    if (instructions === '' && (history.length === 0 || (await this.#continues(own, history))))
      return { sessionId: own, answered: nothing }
    const { store, now } = this.#deps
    const digest = (messages: readonly SpokenMessage[]): string => digestOf(agent.id, user, instructions, messages)
    const sessionId = (await this.#claim(agent, digest(history))) ?? (await this.#make(agent, history))
    return {
      sessionId,
      answered: (text) =>
        store.settle(sessionId, digest([...history, question, { role: 'assistant', text, images: [] }]), now()),
    }
  }

  /** Removes the conversations that were not continued since a time (ISO 8601 UTC). */
  async cleanup(before: string): Promise<void> {
    const { store, sessions } = this.#deps
    for (;;) {
      const unused = await store.unused(before, 100)
      for (const { session_id: id, agent_id: agentId } of unused) {
        if (await sessions.find(id)) await sessions.remove({ id, agentId })
        await store.forget(id)
      }
      if (unused.length < 100) return
    }
  }

  async #named(agent: Agent, name: string): Promise<string> {
    const { sessions } = this.#deps
    if (!UUID.test(name)) return (await sessions.findByLabel(agent.id, name))?.id ?? derived(agent.id, 'session', name)
    const session = await sessions.find(name.toLowerCase())
    if (session?.agentId !== agent.id)
      throw new Refusal('session_not_found', `No session ${name} of this agent`, {
        details: { param: 'X-Svc-Session' },
      })
    return session.id
  }

  /** Whether the session ends with the client's history. */
  async #continues(sessionId: string, history: readonly SpokenMessage[]): Promise<boolean> {
    const limit = Math.min(history.length * 4 + 20, MAX_COMPARED)
    const known = toSpokenMessages(await this.#deps.sessions.page(sessionId, { limit })).slice(-history.length)
    return known.length === history.length && known.every((message, index) => isSame(message, history[index]))
  }

  async #claim(agent: Agent, digest: string): Promise<string | undefined> {
    const { store, sessions, now } = this.#deps
    const id = await store.claim(agent.id, digest, now())
    // The session may have been deleted in between.
    return id !== undefined && (await sessions.find(id)) ? id : undefined
  }

  async #make(agent: Agent, history: readonly SpokenMessage[]): Promise<string> {
    const { store, sessions, now } = this.#deps
    const id = randomUUID()
    const statements: Statement[] = [...sessions.ensure(id, agent.id), store.insert(id, agent.id, now())]
    let turnId = randomUUID()
    for (const [index, message] of history.entries()) {
      // An answer belongs to the turn of its question.
      if (index > 0 && message.role === 'user') turnId = randomUUID()
      statements.push(...sessions.append(id, toMessage(message, turnId, now())))
    }
    await store.commit(statements)
    return id
  }
}

async function nothing(): Promise<void> {
  /* The session holds the answer already. */
}

function toMessage({ role, text, images }: SpokenMessage, turnId: string, createdAt: string): Message {
  const blocks: Block[] = text === '' ? [] : [{ type: 'text', text, labels: ['UserInput'] }]
  for (const { mime, base64 } of images) blocks.push({ type: 'image', mime, base64 })
  return { id: randomUUID(), role, blocks, turnId, createdAt }
}

/** A session as its client sees it: all text of a turn is one answer, and tool calls are left out. */
function toSpokenMessages(messages: readonly Message[]): readonly SpokenMessage[] {
  const spoken: (SpokenMessage & { readonly turnId: string })[] = []
  const failed = new Set(messages.flatMap(({ turnId, failure }) => (failure ? [turnId] : [])))
  for (const { role, blocks, turnId } of messages) {
    if ((role !== 'user' && role !== 'assistant') || failed.has(turnId)) continue
    const text = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
    const images = blocks.flatMap((block) =>
      block.type === 'image' ? [{ mime: block.mime, base64: block.base64 }] : [],
    )
    if (text === '' && images.length === 0) continue
    const before = spoken.at(-1)
    if (before && role === 'assistant' && before.role === role && before.turnId === turnId)
      spoken[spoken.length - 1] = { ...before, text: `${before.text}\n\n${text}` }
    else spoken.push({ role, text, images, turnId })
  }
  return spoken
}
function isSame(a: SpokenMessage, b: SpokenMessage | undefined): boolean {
  return (
    b !== undefined &&
    a.role === b.role &&
    a.text.trim() === b.text.trim() &&
    a.images.length === b.images.length &&
    a.images.every(({ base64 }, index) => base64 === b.images[index]?.base64)
  )
}

function digestOf(
  agentId: string,
  user: string | undefined,
  instructions: string,
  messages: readonly SpokenMessage[],
): string {
  return hash(
    'sha256',
    JSON.stringify([
      agentId,
      user ?? null,
      instructions,
      messages.map(({ role, text, images }) => [role, text.trim(), images.map(({ base64 }) => hash('sha256', base64))]),
    ]),
  )
}
/** The same id for the same name, as a UUID of version 8. */
function derived(...parts: readonly string[]): string {
  const hex = hash('sha256', JSON.stringify(['openai-api', ...parts]))
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
