import mime from 'mime'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage, JsonObject } from 'svc/channels'
import { ITEM, USER_MESSAGE } from './bot-wire.ts'
import type { Item, Media, Message } from './bot-wire.ts'

const MAX_QUOTE = 2000
/** How voice messages are encoded, by number. */
const VOICE: Readonly<Record<number, string>> = { 5: 'audio/amr', 6: 'audio/silk', 7: 'audio/mpeg', 8: 'audio/ogg' }

/** The message of a person; `undefined` for those of bots, those of groups, and empty ones. */
export function decodeBotMessage(message: Message, now: number): InboundMessage | undefined {
  const { from_user_id: person, message_type: type, group_id: group, create_time_ms: written } = message
  if (person.endsWith('@im.bot') || (type ?? USER_MESSAGE) !== USER_MESSAGE || group) return undefined
  const id = idOf(message)
  const items = message.item_list ?? []
  const text = items
    .map(textOf)
    .filter((part) => part !== '')
    .join('\n')
  const attachments = items.flatMap(attachmentsOf)
  if (id === undefined || (text === '' && attachments.length === 0)) return undefined
  return {
    id,
    chat: { id: person, kind: 'direct' },
    sender: { id: person, name: person.split('@', 1)[0] || person },
    text,
    attachments,
    mentionsBot: true,
    sentAt: isoTime(written ?? now),
  }
}

/** What a redelivery repeats. Numbers of 64 bits lose their last digits in JSON. */
function idOf({ message_id: id, seq, client_id: client, create_time_ms: written }: Message): string | undefined {
  if (id == null) return client || undefined
  return Number.isSafeInteger(id) ? String(id) : `${id}.${seq ?? written ?? 0}`
}

function textOf({ text_item: text, voice_item: voice, ref_msg: quoted, type }: Item): string {
  const own = type === ITEM.voice ? voice?.text : text?.text
  const quote = quoted?.title ?? quoted?.message_item?.text_item?.text ?? ''
  const lines = quote.slice(0, MAX_QUOTE).trim().split('\n')
  const before = quote.trim() === '' ? [] : lines.map((line) => `> ${line}`)
  return [...before, own?.trim() ?? ''].join('\n').trim()
}

function attachmentsOf({ type, image_item: image, voice_item: voice, file_item: file, video_item: video }: Item) {
  if (type === ITEM.image) return attachment(image?.media, 'image/jpeg', 'image.jpg', image?.aeskey)
  if (type === ITEM.video) return attachment(video?.media, 'video/mp4', 'video.mp4')
  if (type === ITEM.voice) {
    const format = VOICE[voice?.encode_type ?? 6] ?? 'audio/silk'
    return attachment(voice?.media, format, `voice.${mime.getExtension(format) ?? 'silk'}`)
  }
  if (type !== ITEM.file) return []
  const name = file?.file_name || 'file'
  const size = Number(file?.len ?? '')
  const found = attachment(file?.media, mime.getType(name.slice(-64)) ?? 'application/octet-stream', name)
  return found.map((one) => (Number.isSafeInteger(size) && size > 0 ? { ...one, size } : one))
}

function attachment(
  media: Media | null | undefined,
  type: string,
  name: string,
  hexKey?: string | null,
): readonly InboundAttachment[] {
  const param = media?.encrypt_query_param
  const key = keyOf(media, hexKey)
  if (!param || key === undefined) return []
  const reference: JsonObject = omitUndefined({ param, key: key === '' ? undefined : key })
  return [{ kind: type === 'application/octet-stream' ? 'file' : attachmentKind(type), name, mime: type, reference }]
}

/** In hexadecimal; empty where the file is not encrypted, and `undefined` where the key cannot be read. */
function keyOf(media: Media | null | undefined, hexKey: string | null | undefined): string | undefined {
  if (hexKey && /^[0-9a-f]{32}$/i.test(hexKey)) return hexKey
  if (!media?.aes_key) return ''
  const bytes = Buffer.from(media.aes_key, 'base64')
  if (bytes.length === 16) return bytes.toString('hex')
  const text = bytes.toString('latin1')
  return /^[0-9a-f]{32}$/i.test(text) ? text : undefined
}
