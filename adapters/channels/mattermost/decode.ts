import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { FileInfo, Post, User } from './wire.ts'

/** What is known of a post beside itself. */
export interface DecodeContext {
  readonly bot: User
  readonly ignoreBots: boolean
  readonly channelType?: string | undefined
  readonly channelName?: string | undefined
  readonly teamId?: string | undefined
  readonly senderName?: string | undefined
  readonly mentionedIds?: readonly string[] | undefined
  /** Whether the post is in a thread that the bot began. */
  readonly isInOwnThread?: boolean
}

/** The message of a person; `undefined` for what is none. */
export function decodePost(post: Post, context: DecodeContext, isEdit = false): InboundMessage | undefined {
  if (!isOfPerson(post, context)) return undefined
  // The server reports a post as edited when a reaction or a preview is added to it, too.
  if (isEdit && !((post.edit_at ?? 0) > 0)) return undefined
  const isDirect = context.channelType === 'D'
  const mention = mentionOf(context.bot.username)
  const written = post.message ?? ''
  const mentionsBot = isDirect || mention.test(written) || isForBot(context)
  const text = withoutMention(written, mention)
  const attachments = (post.metadata?.files ?? []).map(decodeFile)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: post.id,
    chat: omitUndefined({
      id: post.channel_id,
      kind: isDirect ? ('direct' as const) : ('group' as const),
      title: context.channelName || undefined,
      guildId: context.teamId || undefined,
    }),
    threadId: post.root_id || undefined,
    sender: senderOf(post, context.senderName),
    text,
    attachments,
    mentionsBot,
    sentAt: isoTime(post.create_at),
    isEdit: isEdit || undefined,
  })
}

/** What is addressed to the bot begins with its name and often a comma. */
function withoutMention(written: string, mention: RegExp): string {
  const text = written.replace(mention, '$1').trim()
  return text === written.trim() ? text : text.replace(/^[,:]\s*/, '')
}

/** Types are notices of the server, such as system_join_channel, and posts of plugins. */
function isOfPerson(post: Post, { bot, ignoreBots }: DecodeContext): boolean {
  if (post.user_id === bot.id || (ignoreBots && isBot(post))) return false
  return (post.type ?? '') === '' && !((post.delete_at ?? 0) > 0)
}

function isBot({ props }: Post): boolean {
  return isTrue(props?.from_bot) || isTrue(props?.from_webhook)
}

function isForBot({ bot, mentionedIds = [], isInOwnThread = false }: DecodeContext): boolean {
  return isInOwnThread || mentionedIds.includes(bot.id)
}

function senderOf(post: Post, handle: string | undefined): InboundMessage['sender'] {
  const name = post.props?.override_username || handle?.replace(/^@/, '') || post.user_id
  return omitUndefined({
    id: post.user_id,
    name,
    handle: isBot(post) ? undefined : handle || undefined,
    isBot: isBot(post) || undefined,
  })
}

/** The mention of the bot, with what stands before it. */
function mentionOf(username: string): RegExp {
  return new RegExp(`(^|[^\\w@.-])@${RegExp.escape(username)}(?![\\w-]|\\.\\w)`, 'gi')
}

function isTrue(mark: string | boolean | null | undefined): boolean {
  return mark === true || mark === 'true'
}

function decodeFile(file: FileInfo): InboundAttachment {
  const mime = file.mime_type?.split(';', 1)[0] || 'application/octet-stream'
  return omitUndefined({
    kind: attachmentKind(mime),
    name: file.name || file.id,
    mime,
    size: file.size ?? undefined,
    reference: { file: file.id },
  })
}
