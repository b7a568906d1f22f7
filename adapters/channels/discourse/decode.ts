import mime from 'mime'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { categoryChat, postId, privateChat } from './place.ts'
import type { Bot, Post, Topic } from './wire.ts'

/** A file in the text of a post, with its size behind it if it is no picture. */
const FILE = /!?\[([^\]\n]{0,255})\]\(upload:\/\/([\w.-]{1,200})\)(?: \([\d.,]{1,12} [A-Za-z]{1,5}\))?/g
const MAX_FILES = 20
const REGULAR = 1
const PRIVATE = 'private_message'

export interface DecodeContext {
  readonly bot: Bot
  readonly topic: Topic
  readonly isEdit?: boolean
}

/** The message of a person; `undefined` for what is none, and for what is not for the bot. */
export function decodePost(post: Post, { bot, topic, isEdit }: DecodeContext): InboundMessage | undefined {
  if (!isOfPerson(post, bot)) return undefined
  const chat = chatOf(post, topic, bot)
  if (!chat) return undefined
  const mention = mentionOf(bot.username)
  const attachments = filesOf(post.raw)
  const text = withoutMention(attachments.length > 0 ? post.raw.replace(FILE, '') : post.raw, mention)
  const mentionsBot = chat.kind === 'direct' || mention.test(post.raw) || isSame(post.reply_to_user?.username, bot)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  const answered = post.reply_to_post_number
  return omitUndefined({
    id: postId(post.topic_id, post.post_number),
    chat,
    threadId: topic.archetype === PRIVATE ? undefined : String(post.topic_id),
    sender: {
      id: String(post.user_id ?? post.username),
      name: post.name || post.username,
      handle: `@${post.username}`,
    },
    text,
    attachments,
    mentionsBot,
    replyTo: answered == null ? undefined : postId(post.topic_id, answered),
    sentAt: isoTime(Date.parse(post.created_at)),
    isEdit: isEdit || undefined,
  })
}

/** Whether somebody can have written in a topic, as far as is known of it. */
export function mayWrite({ archetype, details }: Topic, name: string): boolean {
  const { allowed_users: users = [], allowed_groups: groups = [] } = details ?? {}
  const isIn = users.some(({ username }) => username.toLowerCase() === name.toLowerCase())
  return archetype !== PRIVATE || groups.length > 0 || isIn
}

/** Whispers, notices of moderators and what the forum itself writes are none. */
function isOfPerson(post: Post, bot: Bot): boolean {
  const isVisible = post.hidden !== true && post.user_deleted !== true && post.deleted_at == null
  if ((post.user_id ?? 0) < 0) return false
  return isVisible && post.post_type === REGULAR && post.user_id !== bot.id && !isSame(post.username, bot)
}

function chatOf(post: Post, topic: Topic, bot: Bot): InboundMessage['chat'] | undefined {
  const title = post.topic_title ?? topic.title ?? undefined
  if (topic.archetype !== PRIVATE) {
    const id = categoryChat(post.category_id ?? topic.category_id ?? 0)
    return omitUndefined({ id, kind: 'group' as const, title })
  }
  // An administrator sees the messages of everybody: those that are not for the bot are left unread.
  const { allowed_users: users = [], allowed_groups: groups = [] } = topic.details ?? {}
  const isMember = users.some(({ username }) => isSame(username, bot))
  if (!isMember && !groups.some(({ name }) => bot.groups.includes(name))) return undefined
  const isDirect = users.length <= 2 && groups.length === 0
  return omitUndefined({
    id: privateChat(post.topic_id),
    kind: isDirect ? ('direct' as const) : ('group' as const),
    title,
  })
}

/** User names ignore case. */
const isSame = (name: string | null | undefined, { username }: Bot): boolean =>
  name?.toLowerCase() === username.toLowerCase()

function mentionOf(username: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}_@./-])@${RegExp.escape(username)}(?![\\p{L}\\p{N}_-]|\\.[\\p{L}\\p{N}])`, 'giu')
}

/** What is addressed to the bot begins with its name and often a comma. */
function withoutMention(written: string, mention: RegExp): string {
  const text = written.replace(mention, '').trim()
  return text === written.trim() ? text : text.replace(/^[,:]\s*/, '')
}

function filesOf(raw: string): readonly InboundAttachment[] {
  return [...raw.matchAll(FILE).take(MAX_FILES)].map(([, label = '', file = '']) => {
    const name = label.split('|', 1)[0] || file
    const type = mime.getType(file) ?? mime.getType(name) ?? 'application/octet-stream'
    return { kind: attachmentKind(type), name, mime: type, reference: { file } }
  })
}
