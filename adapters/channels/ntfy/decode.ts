import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { Attachment, Line } from './wire.ts'

/** Marks what the bot posts: the topic sends it back, also after a restart. */
export const OWN_TAG = 'svc'

/** The message of a line; `undefined` for signs of life and what the bot posted itself. */
export function decodeLine(line: Line): InboundMessage | undefined {
  const { id, topic, title, message, tags, attachment, time } = line
  if (line.event !== 'message' || tags.includes(OWN_TAG)) return undefined
  // ntfy makes up a text for a file without one.
  const text = attachment && message.startsWith('You received a file: ') ? '' : message
  if (text.trim() === '' && !attachment) return undefined
  return {
    id,
    chat: omitUndefined({ id: topic, kind: 'direct' as const, title: topic }),
    // Everybody who knows the topic may have written it.
    sender: { id: topic, name: title ?? topic, isUnverified: true },
    text,
    attachments: attachment ? [attachmentOf(attachment)] : [],
    mentionsBot: true,
    sentAt: isoTime(time * 1000),
  }
}

function attachmentOf({ name, type, size, url }: Attachment): InboundAttachment {
  return omitUndefined({ kind: attachmentKind(type), name, mime: type, size, reference: { url } })
}
