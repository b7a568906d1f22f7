import * as v from 'valibot'
import { isObject } from 'svc/sdk'
import type { InboundMessage } from 'svc/channels'
import { inboxStates } from './states.ts'

export type InboxState = (typeof inboxStates)[number]
const Integer = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number))

/** A message that was accepted. Its id is that of the turn that answers it. */
export const InboxRow = v.object({
  id: v.string(),
  channel: v.string(),
  account: v.string(),
  message_id: v.string(),
  conversation: v.string(),
  /** Messages of one queue are answered one after the other. Commands have a queue beside that of the conversation. */
  queue: v.string(),
  standing: v.picklist(['operator', 'user', 'anybody']),
  message: v.pipe(
    v.string(),
    v.parseJson(),
    v.custom<InboundMessage>((value) => isObject(value) && typeof value['text'] === 'string'),
  ),
  state: v.picklist(inboxStates),
  /** The process that works on it. */
  owner: v.string(),
  attempts: Integer,
  next_at: v.nullable(v.string()),
  reason: v.nullable(v.string()),
  agent_id: v.string(),
  received_at: v.string(),
  settled_at: v.nullable(v.string()),
})
export type InboxRow = v.InferOutput<typeof InboxRow>

/**
 * What a redelivery repeats: `message_id` of its row. On some platforms senders choose the ids, so that somebody else
 * may use the same.
 */
export function deliveryKey({ id, sender }: Pick<InboundMessage, 'id' | 'sender'>): string {
  return `${id}\n${sender.id}`
}
