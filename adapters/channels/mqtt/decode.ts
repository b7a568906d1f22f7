import { createHash } from 'node:crypto'
import type { IPublishPacket } from 'mqtt'
import { isObject, readJson } from 'svc/sdk'
import type { InboundMessage, JsonObject } from 'svc/channels'
import type { MqttConfig } from './config.ts'
import { isTopic, matchesFilter, wildcardOf } from './topics.ts'

/** A payload: a JSON object with a text, or the text itself. */
interface Payload {
  readonly text: string
  readonly id?: string
  readonly sender?: string
  readonly replyTo?: string
}

/** `undefined` for an empty message, which clears what was retained. */
export function readPayload(payload: Uint8Array): Payload | undefined {
  const raw = new TextDecoder().decode(payload)
  const parsed = raw.startsWith('{') ? readObject(raw) : undefined
  if (!parsed) return raw.trim() === '' ? undefined : { text: raw }
  const field = (name: string): string | undefined => {
    const value = parsed[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const text = field('text')
  if (text === undefined) return { text: raw }
  const [id, sender, replyTo] = [field('id'), field('sender'), field('reply_to')]
  return { text, ...(id && { id }), ...(sender && { sender }), ...(replyTo && { replyTo }) }
}

function readObject(text: string): JsonObject | undefined {
  try {
    const value = readJson(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined /* a text that begins with a brace */
  }
}

export function decodeMessage(
  packet: IPublishPacket,
  payload: Payload,
  { id, config, now }: { readonly id: string; readonly config: MqttConfig; readonly now: number },
): InboundMessage {
  // The broker can decide who publishes under a level of a topic, but not what a payload says.
  const user = wildcardOf(config.subscribe_topics, packet.topic)
  const sender = user ?? payload.sender ?? packet.topic
  const replyContext = replyContextOf(packet, payload, config)
  return {
    id,
    chat: { id: sender, kind: 'direct', title: packet.topic },
    sender: { id: sender, name: payload.sender ?? sender, ...(user === undefined && { isUnverified: true }) },
    text: payload.text,
    attachments: [],
    mentionsBot: true,
    sentAt: new Date(now).toISOString(),
    ...(Object.keys(replyContext).length > 0 && { replyContext }),
  }
}

const MAX_CORRELATION_BYTES = 1024

/** Where the sender wants the answer, as far as the operator permits it, and how it recognizes the answer. */
function replyContextOf({ properties }: IPublishPacket, { replyTo }: Payload, config: MqttConfig): JsonObject {
  const topic = properties?.responseTopic ?? replyTo
  const correlation = properties?.correlationData
  const isPermitted =
    topic !== undefined && isTopic(topic) && config.response_topics.some((filter) => matchesFilter(filter, topic))
  return {
    ...(isPermitted && topic.length < MAX_CORRELATION_BYTES && { topic }),
    ...(correlation &&
      correlation.length <= MAX_CORRELATION_BYTES && { correlation: Buffer.from(correlation).toString('base64') }),
  }
}

export function digestOf({ topic, payload }: IPublishPacket): string {
  return createHash('sha256').update(topic).update('\0').update(payload).digest('hex').slice(0, 32)
}
