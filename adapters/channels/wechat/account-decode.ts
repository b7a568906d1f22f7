import mime from 'mime'
import { isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { Message } from './account-wire.ts'

/** The message of a person; `undefined` for events, such as of somebody who follows the account. */
export function decodeAccountMessage(message: Message): InboundMessage | undefined {
  const { FromUserName: person, MsgId: id, CreateTime: time } = message
  if (id === undefined || message.MsgType === 'event') return undefined
  const text = textOf(message).trim()
  const attachments = attachmentsOf(message)
  if (text === '' && attachments.length === 0) return undefined
  return {
    id,
    chat: { id: person, kind: 'direct' },
    // The account is told no names.
    sender: { id: person, name: person },
    text,
    attachments,
    mentionsBot: true,
    sentAt: isoTime(Number(time) * 1000),
  }
}

function textOf(message: Message): string {
  const { MsgType: type, Content: content, Recognition: recognition } = message
  if (type === 'text') return content
  if (type === 'voice') return recognition
  if (type === 'link') return [message.Title, message.Url].filter((part) => part !== '').join('\n')
  if (type !== 'location') return ''
  const place = `Location: ${message.Location_X}, ${message.Location_Y}`
  return message.Label === '' ? place : `${message.Label}\n${place}`
}

function attachmentsOf({ MsgType: type, MediaId: media, Format: format }: Message): readonly InboundAttachment[] {
  if (media === '') return []
  const reference = { media }
  if (type === 'image') return [{ kind: 'image', name: 'image.jpg', mime: 'image/jpeg', reference }]
  if (type === 'video' || type === 'shortvideo')
    return [{ kind: 'video', name: 'video.mp4', mime: 'video/mp4', reference }]
  if (type !== 'voice') return []
  const extension = /^\w{1,8}$/.test(format) ? format.toLowerCase() : 'amr'
  const known = mime.getType(extension) ?? ''
  return [
    { kind: 'audio', name: `voice.${extension}`, mime: known.startsWith('audio/') ? known : 'audio/amr', reference },
  ]
}
