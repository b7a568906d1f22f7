import * as v from 'valibot'
import { isObject, omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage, JsonObject } from 'svc/channels'
import type { WebMessage } from './baileys.ts'

type Content = Readonly<Record<string, unknown>>

/** Messages in a wrapper: ones that disappear, and ones with a caption. */
const WRAPPERS = ['ephemeralMessage', 'viewOnceMessage', 'documentWithCaptionMessage']
const MEDIA: readonly (readonly [field: string, kind: InboundAttachment['kind'], name: string])[] = [
  ['imageMessage', 'image', 'image'],
  ['audioMessage', 'audio', 'audio'],
  ['videoMessage', 'video', 'video'],
  ['documentMessage', 'file', 'document'],
  ['stickerMessage', 'image', 'sticker'],
]

/** What is read of a message beside its content, which has one field by its kind. */
const Received = v.object({
  key: v.object({
    id: v.string(),
    remoteJid: v.string(),
    fromMe: v.nullish(v.boolean()),
    participant: v.nullish(v.string()),
  }),
  pushName: v.nullish(v.string()),
  message: v.nullish(v.record(v.string(), v.unknown())),
})

/** The message of a person; `undefined` for own ones, states and kinds without a content. */
export function decodeWebMessage(raw: WebMessage, ownId: string): InboundMessage | undefined {
  const known = v.safeParse(Received, raw)
  if (!known.success) return undefined
  const { id, remoteJid, fromMe, participant } = known.output.key
  if (id === '' || remoteJid === '' || fromMe || remoteJid === 'status@broadcast') return undefined
  const content = unwrap(known.output.message ?? {})
  const text = textOf(content)
  const attachments = attachmentsOf(content, raw)
  if (text === '' && attachments.length === 0) return undefined
  const isGroup = remoteJid.endsWith('@g.us')
  const sender = participant ?? remoteJid
  const context = contextOf(content)
  const mentioned = Array.isArray(context['mentionedJid']) ? context['mentionedJid'] : []
  const own = bare(ownId)
  const number = sender.endsWith('@s.whatsapp.net') ? `+${bare(sender)}` : undefined
  return {
    id,
    chat: { id: remoteJid, kind: isGroup ? 'group' : 'direct' },
    sender: omitUndefined({ id: bare(sender), name: known.output.pushName || bare(sender), handle: number }),
    text: text.replaceAll(`@${own}`, '').trim(),
    attachments,
    mentionsBot: [...mentioned, context['participant']].some((jid) => typeof jid === 'string' && bare(jid) === own),
    ...omitUndefined({
      replyTo: typeof context['stanzaId'] === 'string' ? context['stanzaId'] : undefined,
      isForwarded: context['isForwarded'] === true || undefined,
    }),
    sentAt: isoTime(secondsOf(raw) * 1000),
  }
}

/** The number of a WhatsApp address, without the device. */
export function bare(jid: string): string {
  return jid.split(/[:@]/)[0] ?? ''
}

function unwrap(content: Content): Content {
  for (const name of WRAPPERS) {
    const inner = content[name]
    if (isObject(inner) && isObject(inner['message'])) return unwrap(inner['message'])
  }
  return content
}

function textOf(content: Content): string {
  if (typeof content['conversation'] === 'string') return content['conversation']
  const extended = content['extendedTextMessage']
  if (isObject(extended) && typeof extended['text'] === 'string') return extended['text']
  for (const [field] of MEDIA) {
    const media = content[field]
    if (isObject(media) && typeof media['caption'] === 'string') return media['caption']
  }
  return ''
}

function contextOf(content: Content): Content {
  for (const part of Object.values(content))
    if (isObject(part) && isObject(part['contextInfo'])) return part['contextInfo']
  return {}
}

function attachmentsOf(content: Content, { key }: WebMessage): readonly InboundAttachment[] {
  return MEDIA.flatMap(([field, kind, fallback]) => {
    const media = content[field]
    if (!isObject(media)) return []
    const { fileName, mimetype, fileLength } = media
    const size = Number(fileLength)
    return [
      omitUndefined({
        kind,
        name: typeof fileName === 'string' ? fileName : fallback,
        mime: typeof mimetype === 'string' ? mimetype : 'application/octet-stream',
        size: Number.isFinite(size) && size > 0 ? size : undefined,
        reference: referenceOf(field, media, key),
      }),
    ]
  })
}

/** What WhatsApp needs to find and decrypt the file. Its key opens this file only. */
function referenceOf(field: string, media: Content, key: WebMessage['key']): JsonObject {
  const { url, directPath, mediaKey, mimetype } = media
  const mediaKeyText = mediaKey instanceof Uint8Array ? Buffer.from(mediaKey).toString('base64') : undefined
  return omitUndefined({ field, url, directPath, mimetype, mediaKey: mediaKeyText, id: key.id, jid: key.remoteJid })
}

/** The message that a reference stands for, as far as it is needed to read its file. */
export function messageOfReference(reference: JsonObject): WebMessage {
  const { field, id, jid, mediaKey, ...media } = reference
  return {
    key: { id: String(id), remoteJid: String(jid) },
    message: { [String(field)]: { ...media, mediaKey: Buffer.from(String(mediaKey), 'base64') } },
  }
}

function secondsOf({ messageTimestamp: time }: WebMessage): number {
  if (typeof time === 'number') return time
  return typeof time?.toNumber === 'function' ? time.toNumber() : 0
}
