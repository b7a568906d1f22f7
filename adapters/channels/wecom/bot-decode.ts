import mime from 'mime'
import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { personChat } from './address.ts'
import { MixedItem } from './wire.ts'
import type { BotMessage, Media } from './wire.ts'

const MAX_FILES = 20
const MAX_ADDRESS = 3000
/** In a group a message begins with the name of the robot, which nothing else tells. */
const MENTION = /^@\S+\s*/

/** The message of a person; `undefined` for types without a content. `now` stands for a time that is not told. */
export function decodeBotMessage(message: BotMessage, reqId: string, now: number): InboundMessage | undefined {
  const { msgid: id, chatid, chattype, from, create_time: seconds } = message
  const isGroup = chattype === 'group' && !!chatid
  const content = contentOf(message)
  if (!content) return undefined
  const { text: written, attachments } = content
  const text = (isGroup ? written.trim().replace(MENTION, '') : written).trim()
  return {
    id,
    chat: isGroup ? { id: chatid, kind: 'group' } : { id: personChat(from.userid), kind: 'direct' },
    sender: { id: from.userid, name: from.userid },
    text,
    attachments,
    // The robot gets no other messages of a group.
    mentionsBot: true,
    sentAt: isoTime(seconds == null ? now : seconds * 1000),
    // An answer belongs to the request that brought the message.
    replyContext: { reqId },
  }
}

type Content = Pick<InboundMessage, 'text' | 'attachments'>

function contentOf(message: BotMessage): Content | undefined {
  const { msgtype, text, voice, image, file, video, mixed } = message
  switch (msgtype) {
    case 'text':
      return { text: text?.content ?? '', attachments: [] }
    case 'voice':
      return { text: voice?.content ?? '', attachments: [] }
    case 'image':
      return { text: '', attachments: mediaOf(image, 'image.png') }
    case 'file':
      return { text: '', attachments: mediaOf(file, 'file') }
    case 'video':
      return { text: '', attachments: mediaOf(video, 'video.mp4') }
    case 'mixed':
      return mixedOf(mixed?.msg_item ?? [])
    default:
      return undefined
  }
}

function mixedOf(raw: readonly unknown[]): Content {
  const items = raw.flatMap((each) => {
    const item = v.safeParse(MixedItem, each)
    return item.success ? [item.output] : []
  })
  return {
    text: items
      .map(({ text }) => text?.content ?? '')
      .filter((text) => text !== '')
      .join('\n'),
    attachments: items.flatMap(({ image }) => mediaOf(image, 'image.png')).slice(0, MAX_FILES),
  }
}

function mediaOf(media: Media | null | undefined, otherwise: string): readonly InboundAttachment[] {
  // A reference has room for so much.
  if (!media || media.url.length > MAX_ADDRESS || (media.aeskey ?? '').length > 100) return []
  const name = media.filename || otherwise
  const type = mime.getType(name) ?? 'application/octet-stream'
  const reference = omitUndefined({ url: media.url, key: media.aeskey ?? undefined })
  return [{ kind: attachmentKind(type), name, mime: type, reference }]
}
