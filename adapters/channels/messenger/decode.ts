import { createHash } from 'node:crypto'
import mime from 'mime'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { Attachment, Event } from './wire.ts'

/** Addresses of files are some hundred characters long. */
const MAX_URL = 3000
const MAX_FILES = 30
/** What a file is when its address has no name that tells it. */
const FALLBACKS: Readonly<Record<string, readonly [name: string, mime: string]>> = {
  image: ['image.jpg', 'image/jpeg'],
  video: ['video.mp4', 'video/mp4'],
  audio: ['audio.mp4', 'audio/mp4'],
  file: ['file', 'application/octet-stream'],
}

/** The message of a person; `undefined` for other events, and for messages without a content. */
export function decodeEvent(event: Event, pageId: string): InboundMessage | undefined {
  const { sender, recipient, message, message_edit: edit, postback } = event
  if (sender.id === pageId || recipient.id !== pageId) return undefined
  const base: Base = {
    chat: { id: sender.id, kind: 'direct' },
    // The name is looked up later.
    sender: { id: sender.id, name: sender.id },
    attachments: [],
    mentionsBot: true,
    sentAt: isoTime(event.timestamp),
  }
  if (edit) return { ...base, id: edit.mid, text: edit.text, isEdit: true }
  const press = postback?.payload ?? postback?.title
  if (press != null) return { ...base, id: postback?.mid || pressId(event, press), text: press }
  return message ? decodeMessage(message, base) : undefined
}
type Base = Omit<InboundMessage, 'id' | 'text'>

function decodeMessage(message: NonNullable<Event['message']>, base: Base): InboundMessage | undefined {
  if (message.is_echo) return undefined
  const attachments = (message.attachments ?? []).slice(0, MAX_FILES)
  const files = attachments.flatMap(decodeFile)
  const text = message.quick_reply?.payload ?? textOf(message.text ?? '', attachments)
  if (text === '' && files.length === 0) return undefined
  return omitUndefined({
    ...base,
    id: message.mid,
    text,
    attachments: files,
    replyTo: message.reply_to?.mid ?? undefined,
  })
}

/** Of a press that comes without an id: what a redelivery repeats. */
function pressId({ sender, timestamp }: Event, press: string): string {
  return createHash('sha256').update(`${sender.id} ${timestamp} ${press}`).digest('base64url')
}

/** Shared posts and links come as attachments with an address, which is what was sent. */
function textOf(text: string, attachments: readonly Attachment[]): string {
  const links = attachments
    .filter(({ type }) => !Object.hasOwn(FALLBACKS, type))
    .flatMap(({ payload }) => payload?.url ?? [])
    .filter((url) => url.length <= MAX_URL && !text.includes(url))
  return [text, ...links].filter((part) => part !== '').join('\n')
}

function decodeFile({ type, payload }: Attachment): InboundAttachment[] {
  const url = payload?.url
  const fallback = Object.hasOwn(FALLBACKS, type) ? FALLBACKS[type] : undefined
  if (!fallback || url == null || url === '' || url.length > MAX_URL) return []
  const [fallbackName, fallbackMime] = fallback
  const written = nameOf(url)
  const known = mime.getType(written)
  // Only files keep their names.
  const isKnown = type === 'file' ? written !== '' : known?.startsWith(`${type}/`)
  const [name, kind] = isKnown ? [written, known ?? fallbackMime] : [fallbackName, fallbackMime]
  return [{ kind: attachmentKind(kind), name, mime: kind, reference: { url } }]
}

/** The last part of the path. */
function nameOf(url: string): string {
  const part = URL.parse(url)?.pathname.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
