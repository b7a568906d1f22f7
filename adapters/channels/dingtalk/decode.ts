import mime from 'mime'
import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { Part } from './wire.ts'
import type { RobotMessage } from './wire.ts'

const MAX_FILES = 20
/** What begins so is a person, and not a group. */
export const DIRECT = 'user:'

/** The message of a person; `undefined` for what is none, and for empty ones. */
export function decodeMessage(message: RobotMessage): InboundMessage | undefined {
  const { senderId, senderStaffId: staff, senderNick: name, chatbotUserId: bot } = message
  if (senderId === bot) return undefined
  const sender = staff || senderId
  const isDirect = message.conversationType === '1'
  const mentionsBot = isDirect || message.isInAtList === true
  const { text, attachments } = contentOf(message)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return {
    id: message.msgId,
    chat: omitUndefined({
      // To write to a person one needs the person, and not the conversation.
      id: isDirect && staff ? `${DIRECT}${staff}` : message.conversationId,
      kind: isDirect ? ('direct' as const) : ('group' as const),
      title: (isDirect ? undefined : message.conversationTitle) || undefined,
      guildId: message.chatbotCorpId || undefined,
    }),
    sender: { id: sender, name: name || sender },
    text,
    attachments,
    mentionsBot,
    sentAt: isoTime(Number(message.createAt)),
  }
}

function contentOf({ msgtype, text, content }: RobotMessage): Pick<InboundMessage, 'text' | 'attachments'> {
  const file = (name: string) => fileOf(content?.downloadCode, name)
  switch (msgtype) {
    case 'text':
      return { text: text?.content?.trim() ?? '', attachments: [] }
    case 'richText':
      return richTextOf(content?.richText ?? [])
    case 'picture':
      return { text: '', attachments: file('picture.png') }
    case 'audio':
      return { text: content?.recognition?.trim() ?? '', attachments: file('voice.amr') }
    case 'video':
      return { text: '', attachments: file(`video.${content?.videoType || 'mp4'}`) }
    case 'file':
      return { text: '', attachments: file(content?.fileName || 'file') }
    default:
      return { text: '', attachments: [] }
  }
}

function richTextOf(raw: readonly unknown[]): Pick<InboundMessage, 'text' | 'attachments'> {
  const parts = raw.flatMap((each) => {
    const part = v.safeParse(Part, each)
    return part.success ? [part.output] : []
  })
  const pictures = parts.filter(({ type }) => type === 'picture').slice(0, MAX_FILES)
  return {
    text: parts
      .map(({ text }) => text ?? '')
      .join('')
      .trim(),
    attachments: pictures.flatMap(({ downloadCode: code }) => fileOf(code, 'picture.png')),
  }
}

function fileOf(code: string | null | undefined, name: string): readonly InboundAttachment[] {
  if (!code) return []
  const type = mime.getType(name) ?? 'application/octet-stream'
  return [{ kind: attachmentKind(type), name, mime: type, reference: { code } }]
}
