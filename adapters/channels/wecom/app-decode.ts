import mime from 'mime'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { personChat } from './address.ts'
import type { AppMessage } from './wire.ts'

/** The message of a person; `undefined` for events, and for empty ones. */
export function decodeAppMessage(message: AppMessage): InboundMessage | undefined {
  const { FromUserName: person, MsgId: id, CreateTime: seconds } = message
  const { text, attachments } = contentOf(message)
  if (!id || (text === '' && attachments.length === 0)) return undefined
  return {
    id,
    chat: { id: personChat(person), kind: 'direct' },
    sender: { id: person, name: person },
    text,
    attachments,
    mentionsBot: true,
    sentAt: isoTime(Number(seconds) * 1000),
  }
}

function contentOf(message: AppMessage): Pick<InboundMessage, 'text' | 'attachments'> {
  const { MsgType: type, Content: text, Label: label, Location_X: x, Location_Y: y, Title: title, Url: url } = message
  const lines = (...parts: readonly (string | null | undefined)[]) => ({
    text: parts.filter((part) => part != null && part !== '').join('\n'),
    attachments: [],
  })
  switch (type) {
    case 'text':
      return lines(text?.trim())
    case 'location':
      return lines(label, x != null && y != null ? `Location: ${x}, ${y}` : '')
    case 'link':
      return lines(title, url)
    case 'image':
      return { text: '', attachments: mediaOf(message, 'image.jpg') }
    case 'voice':
      return { text: '', attachments: mediaOf(message, `voice.${message.Format || 'amr'}`) }
    case 'video':
      return { text: '', attachments: mediaOf(message, 'video.mp4') }
    default:
      return { text: '', attachments: [] }
  }
}

function mediaOf({ MediaId: media }: AppMessage, name: string): readonly InboundAttachment[] {
  if (!media || media.length > 1000) return []
  const type = mime.getType(name) ?? 'application/octet-stream'
  return [{ kind: attachmentKind(type), name, mime: type, reference: { media } }]
}
