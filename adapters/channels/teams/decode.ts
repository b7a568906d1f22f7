import mime from 'mime'
import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { readConversation } from './conversation.ts'
import { FileDownload, InlineImage, Mention, Press } from './wire.ts'
import type { Activity } from './wire.ts'

export interface DecodeContext {
  readonly appId: string
  /** Keeps the address of a file: whoever has it can read the file, so it is not stored with the message. */
  keepAddress(key: string, address: string): void
}

const MAX_ENTITIES = 100
const MAX_ATTACHMENTS = 20
const MENTION = /<at(?: [^<>]{0,100})?>([^<>]{0,256})<\/at>/g

/** The message of a person; `undefined` for what is none. */
export function decodeActivity(activity: Activity, context: DecodeContext): InboundMessage | undefined {
  const { id, from, conversation } = activity
  if (!id || !from || !conversation || !isMessage(activity) || isOfBot(activity, context.appId)) return undefined
  const { chatId, threadId } = readConversation(conversation.id)
  const isDirect = conversation.conversationType === 'personal'
  const { text, isForBot, replyTo } = contentOf(activity, context.appId)
  const attachments = attachmentsOf(activity, id, context)
  const mentionsBot = isDirect || isForBot
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id,
    chat: chatOf(activity, chatId, isDirect),
    threadId,
    sender: senderOf(from),
    text,
    attachments,
    mentionsBot,
    replyTo,
    sentAt: isoTime(Date.parse(activity.timestamp ?? '')),
    isEdit: activity.type === 'messageUpdate' || undefined,
  })
}

function isMessage({ type, channelData }: Activity): boolean {
  return type === 'message' || (type === 'messageUpdate' && channelData?.eventType === 'editMessage')
}

function isOfBot({ from, recipient }: Activity, appId: string): boolean {
  return from?.role === 'bot' || from?.id === recipient?.id || from?.id === `28:${appId}`
}

/** The id in the directory of the organization is what its administrators know. */
function senderOf({ id, aadObjectId, name }: NonNullable<Activity['from']>): InboundMessage['sender'] {
  return omitUndefined({ id: aadObjectId || id, name: name || id, handle: aadObjectId ? id : undefined })
}

function chatOf({ channelData, conversation }: Activity, id: string, isDirect: boolean): InboundMessage['chat'] {
  return omitUndefined({
    id,
    kind: isDirect ? ('direct' as const) : ('group' as const),
    title: channelData?.channel?.name ?? conversation?.name ?? undefined,
    guildId: channelData?.team?.id,
  })
}

interface Content {
  readonly text: string
  readonly isForBot: boolean
  readonly replyTo?: string | undefined
}
/** What was written, or the value of the button that was pressed. */
function contentOf(activity: Activity, appId: string): Content {
  const press = v.safeParse(Press, activity.value)
  if (press.success) return { text: press.output.svc, isForBot: true, replyTo: activity.replyToId ?? undefined }
  return readText(activity, appId)
}

/** The text without the mention of the bot; those of others are `@Name`. */
function readText(activity: Activity, appId: string): Content {
  const own = new Set([`28:${appId}`, activity.recipient?.id])
  const entities = (activity.entities ?? []).slice(0, MAX_ENTITIES)
  const mentions = entities.flatMap((entity) =>
    v.is(Mention, entity) && own.has(entity.mentioned.id) ? [entity.text ?? ''] : [],
  )
  const written = activity.text ?? ''
  let rest = written
  for (const mention of new Set(mentions)) if (mention !== '') rest = rest.replaceAll(mention, '')
  const text = rest.replace(MENTION, '@$1').trim()
  // What is addressed to the bot begins with its name and often a comma.
  return { text: rest === written ? text : text.replace(/^[,:]\s*/, ''), isForBot: mentions.length > 0 }
}

function attachmentsOf({ attachments }: Activity, id: string, context: DecodeContext): readonly InboundAttachment[] {
  return (attachments ?? [])
    .slice(0, MAX_ATTACHMENTS)
    .flatMap((raw, index) => decodeFile(raw, `${id}/${index}`, context) ?? decodeImage(raw) ?? [])
}

function decodeFile(raw: unknown, key: string, context: DecodeContext): InboundAttachment | undefined {
  const file = v.safeParse(FileDownload, raw)
  if (!file.success) return undefined
  const { name, content } = file.output
  const type = mime.getType(name) ?? 'application/octet-stream'
  context.keepAddress(key, content.downloadUrl)
  return { kind: attachmentKind(type), name: name || 'file', mime: type, reference: { file: key } }
}

function decodeImage(raw: unknown): InboundAttachment | undefined {
  const image = v.safeParse(InlineImage, raw)
  if (!image.success) return undefined
  const { contentType, contentUrl, name } = image.output
  // The type is `image/*` where Teams does not tell.
  const type = contentType.endsWith('*') ? 'application/octet-stream' : contentType
  return { kind: 'image', name: name || 'image', mime: type, reference: { image: contentUrl } }
}
