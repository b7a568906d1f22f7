import mime from 'mime'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { Message, MessageEvent } from './wire.ts'

/** Addresses of files are some hundred characters long. */
const MAX_URL = 2000
/** Viber tells names of files only. */
const NAMES: Readonly<Record<string, string>> = { picture: 'picture.jpg', video: 'video.mp4' }

/** The message of a person; `undefined` for those without a content. */
export function decodeMessage({
  timestamp,
  message_token: id,
  sender,
  message,
}: MessageEvent): InboundMessage | undefined {
  const attachments = attachmentsOf(message)
  const text = textOf(message)
  if (text === '' && attachments.length === 0) return undefined
  return {
    id,
    chat: { id: sender.id, kind: 'direct' },
    sender: { id: sender.id, name: sender.name || sender.id },
    text,
    attachments,
    mentionsBot: true,
    sentAt: isoTime(timestamp),
  }
}

function textOf({ type, text, media, location, contact }: Message): string {
  if (type === 'location' && location) return `Location: ${location.lat}, ${location.lon}`
  if (type === 'contact' && contact) return ['Contact:', contact.name, contact.phone_number].filter(Boolean).join(' ')
  if (type === 'sticker') return '[sticker]'
  // The link itself is what was sent.
  if (type === 'url') return media ?? text ?? ''
  return text ?? ''
}

function attachmentsOf({ type, media, file_name: fileName, file_size: fileSize, size }: Message): InboundAttachment[] {
  const known = Object.hasOwn(NAMES, type) ? NAMES[type] : undefined
  const name = type === 'file' ? fileName || 'file' : known
  if (name === undefined || media == null || media === '' || media.length > MAX_URL) return []
  const kind = mime.getType(name) ?? 'application/octet-stream'
  return [
    omitUndefined({
      kind: attachmentKind(kind),
      name,
      mime: kind,
      size: fileSize ?? size ?? undefined,
      reference: { url: media },
    }),
  ]
}
