import { v7 } from 'uuid'
import { createMask, currentActor, describeActor, toIso } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { ChannelMessages } from '../channels/contract.ts'
import type { Chat, TurnResult } from '../chat/contract.ts'
import type { AgentMessage, AgentMessages } from '../delegation/contract.ts'
import { shorten, withoutAddress } from './from-audit.ts'
import type { CommsEvent, SendBody, Sent } from './schema.ts'
import type { CommsStore } from './store.ts'

export interface SendDeps {
  readonly agents: Agents
  readonly audit: Audit
  readonly chat: Chat
  readonly messages: AgentMessages
  readonly channels: () => ChannelMessages | undefined
  readonly store: CommsStore
  readonly added: () => void
  readonly now: () => number
}
interface Message {
  readonly id: string
  readonly to: string
  readonly text: string
  /** The agent whose message it is. */
  readonly from: string | undefined
  readonly thread: string | undefined
}

/**
 * Sends to an agent, and waits for its answer, or to a chat. Throws `invalid_request` that names the field,
 * `agent_not_found`, `forbidden`, `conflict`, and what `ChannelMessages.send` throws.
 */
export function send(deps: SendDeps, body: SendBody, id: string = v7()): Promise<Sent> {
  const message = readMessage(body, id)
  const [, channel, chat] = /^channel:([^:]+):(.+)$/s.exec(message.to) ?? []
  if (channel !== undefined && chat !== undefined) return toChannel(deps, message, channel, chat)
  if (message.to.startsWith('channel:'))
    throw new Refusal('invalid_request', 'to: expected channel:<name>:<chat>, such as channel:telegram:4711')
  return toAgent(deps, { ...message, to: withoutPrefix(message.to) })
}

/** Its text is checked by the kind of receiver. */
function readMessage(body: SendBody, id: string): Message {
  const to = body.to ?? body.to_agent_id
  const text = body.content ?? body.message
  if (to === undefined) throw new Refusal('invalid_request', 'to: this field is required')
  if (text === undefined) throw new Refusal('invalid_request', 'content: this field is required')
  if (body.attachments?.length)
    throw new Refusal('invalid_request', 'attachments: a message to an agent or a chat is text only; leave them out')
  const from = body.from ?? body.from_agent_id
  return { id, to, text, from: from && withoutPrefix(from), thread: body.thread_id ?? undefined }
}
const withoutPrefix = (name: string): string => (name.startsWith('agent:') ? name.slice('agent:'.length) : name)

async function toAgent(deps: SendDeps, { id, to, text, from, thread }: Message): Promise<Sent> {
  if (from !== undefined) {
    const turn = await deps.messages.send({ id, from, to, text, conversation: thread })
    return toAnswer(id, await turn.result())
  }
  const target = await deps.agents.resolve(to)
  const event = eventOf(deps, id, text, { ...personOf(), target_id: target.id, target_name: target.name })
  const request = { id, agentId: target.id, text, entryPoint: 'rest' as const, resumable: true }
  const turn = await deps.chat.accept(request, [deps.store.insert(event, deps.added)])
  return toAnswer(id, await turn.result())
}

async function toChannel(deps: SendDeps, message: Message, channel: string, chat: string): Promise<Sent> {
  const { agents, audit, channels, store, added } = deps
  const { id, to, text, thread } = message
  const messages = channels()
  if (!messages) throw new Refusal('service_unavailable', 'The plugin "channels" is not loaded')
  const from =
    message.from === undefined ? undefined : await agents.requireRunning((await agents.resolve(message.from)).id)
  const source = from ? { source_id: from.id, source_name: from.name } : personOf()
  await messages.send({ id, channel, to: chat, text, ...omitUndefined({ thread, agentId: from?.id }) })
  const event = eventOf(deps, id, text, { ...source, target_id: to, target_name: to })
  const details = `message ${id} to ${to}`
  await store.commit([
    store.insert(event, added),
    audit.entry({ event: 'agent_message', details, ...omitUndefined({ agentId: from?.id }) }),
  ])
  return { ok: true, message_id: id }
}

export function toAnswer(id: string, { text, usage, sessionId }: TurnResult): Sent {
  return {
    ok: true,
    message_id: id,
    response: text,
    input_tokens: usage.input,
    output_tokens: usage.output,
    session_id: sessionId,
  }
}

/** The event of a message between agents, for the batch that makes the message durable. */
export function messageEvent({ id, from, to, text }: AgentMessage, now: number): CommsEvent {
  const ends = { source_id: from.id, source_name: from.name, target_id: to.id, target_name: to.name }
  return { id, timestamp: toIso(now), kind: 'agent_message', ...ends, detail: detailOf(text) }
}

/** What looks like a key is hidden: events are kept longer than messages, and more people see them. */
const mask = createMask()
const detailOf = (text: string): string => shorten(mask.text(text))

type Ends = Pick<CommsEvent, 'source_id' | 'source_name' | 'target_id' | 'target_name'>
function eventOf({ now }: SendDeps, id: string, text: string, ends: Ends): CommsEvent {
  return { id, timestamp: toIso(now()), kind: 'agent_message', ...ends, detail: detailOf(text) }
}
/** Who makes the request, when it is no agent. */
function personOf(): Pick<CommsEvent, 'source_id' | 'source_name'> {
  const actor = currentActor()
  return { source_id: '', source_name: actor ? withoutAddress(describeActor(actor)) : '' }
}
