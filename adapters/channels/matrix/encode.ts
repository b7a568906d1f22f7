import { createHash } from 'node:crypto'
import { omitUndefined } from 'svc/sdk'
import type { OutboundAttachment, OutboundMessage } from 'svc/channels'

type Content = Record<string, unknown>
/** Nobody is notified by what an agent writes. */
const NO_MENTIONS = {}

/** The content of a text message. */
export function encodeText(message: OutboundMessage): Content {
  return omitUndefined({ ...bodyOf(message), 'm.relates_to': relationOf(message) })
}

export function encodeNotice(text: string): Content {
  return { msgtype: 'm.notice', body: text, 'm.mentions': NO_MENTIONS }
}

/** The content of an event that replaces the text of an earlier one. */
export function encodeEdit(message: OutboundMessage, eventId: string): Content {
  const body = bodyOf(message)
  return {
    ...body,
    // Shown by clients that know no edits.
    body: `* ${message.plainText}`,
    'm.new_content': body,
    'm.relates_to': { rel_type: 'm.replace', event_id: eventId },
  }
}

/** The content of a file that was uploaded. */
export function encodeFile(message: OutboundMessage, file: OutboundAttachment, url: string): Content {
  return omitUndefined({
    msgtype: file.kind === 'file' ? 'm.file' : `m.${file.kind}`,
    body: file.name,
    filename: file.name,
    url,
    info: { mimetype: file.mime, size: file.size },
    'm.mentions': NO_MENTIONS,
    'm.relates_to': relationOf(message),
  })
}

export function encodeReaction(eventId: string, key: string): Content {
  return { 'm.relates_to': { rel_type: 'm.annotation', event_id: eventId, key } }
}

/** The same for the same parts, so that what is sent again appears once. */
export function transactionId(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}

function bodyOf({ text, plainText }: OutboundMessage): Content {
  return {
    msgtype: 'm.text',
    body: plainText,
    format: 'org.matrix.custom.html',
    formatted_body: text,
    'm.mentions': NO_MENTIONS,
  }
}

function relationOf({ to, replyTo }: OutboundMessage): Content | undefined {
  const reply = replyTo === undefined ? undefined : { event_id: replyTo }
  if (to.threadId !== undefined)
    return {
      rel_type: 'm.thread',
      event_id: to.threadId,
      // Clients without threads show the message as a reply to this one.
      is_falling_back: reply === undefined,
      'm.in_reply_to': reply ?? { event_id: to.threadId },
    }
  return reply && { 'm.in_reply_to': reply }
}
