import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { omitUndefined, readJson, Refusal } from 'svc/sdk'
import type { InboundMessage } from 'svc/channels'
import { InboundBody } from './wire.ts'

/** The message of a verified request; `undefined` when it is empty. Throws `Refusal` for a body that is none. */
export function decodeMessage(body: Uint8Array, timestampMs: number): InboundMessage | undefined {
  const parsed = v.safeParse(InboundBody, readBody(body))
  if (!parsed.success) {
    const [issue] = parsed.issues
    throw new Refusal('invalid_request', `${v.getDotPath(issue) ?? 'body'}: ${issue.message}`)
  }
  const message = parsed.output
  const text = (message.message ?? '').trim()
  if (text === '') return undefined
  const name = message.sender_name || message.sender_id
  return {
    id: message.metadata?.message_id ?? hashOf(body, timestampMs),
    chat: omitUndefined({
      id: message.chat_id ?? message.sender_id,
      kind: message.is_group ? ('group' as const) : ('direct' as const),
    }),
    ...omitUndefined({ threadId: message.thread_id ?? undefined, replyTo: message.reply_to ?? undefined }),
    sender: { id: message.sender_id, name },
    text,
    attachments: [],
    mentionsBot: message.mentions_bot ?? true,
    sentAt: new Date(timestampMs).toISOString(),
    replyContext: { recipientName: name },
  }
}

function readBody(body: Uint8Array): unknown {
  try {
    return readJson(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new Refusal('invalid_request', 'The body is not JSON in UTF-8')
  }
}

/** A redelivery repeats both, and two equal messages of different times are two messages. */
function hashOf(body: Uint8Array, timestampMs: number): string {
  return createHash('sha256').update(`${timestampMs}.`).update(body).digest('hex')
}
