import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { readText } from './entities.ts'
import type { CallbackQuery, Chat, File, Message, Update, User } from './wire.ts'

/** Whose messages these are. */
export interface Bot {
  readonly id: number
  readonly username: string
}

/** The id of a message in the account: Telegram counts messages in each chat. */
export function messageId(chatId: number | string, id: number): string {
  return `${chatId}:${id}`
}

/** The message that an update brings; `undefined` when it brings none. */
export function decodeUpdate(update: Update, bot: Bot): InboundMessage | undefined {
  if (update.callback_query) return decodePress(update.callback_query)
  const edited = update.edited_message
  const message = edited ?? update.message ?? update.channel_post
  if (!message) return undefined
  return decodeMessage(message, bot, edited !== undefined)
}

function decodeMessage(message: Message, bot: Bot, isEdit: boolean): InboundMessage | undefined {
  const sender = senderOf(message)
  if (!sender || message.from?.id === bot.id) return undefined
  const { text, mentionsBot } = textOf(message, bot)
  const attachments = attachmentsOf(message)
  if (text === '' && attachments.length === 0) return undefined
  const replied = repliedMessage(message)
  return {
    id: messageId(message.chat.id, message.message_id),
    chat: chatOf(message.chat),
    ...omitUndefined({ threadId: threadOf(message) }),
    sender,
    text,
    attachments,
    mentionsBot: mentionsBot || replied?.from?.id === bot.id,
    ...omitUndefined({ replyTo: replied && messageId(message.chat.id, replied.message_id) }),
    sentAt: isoTime((message.edit_date ?? message.date) * 1000),
    ...((message.forward_origin ?? message.forward_date) !== undefined && { isForwarded: true }),
    ...(isEdit && { isEdit }),
  }
}

/** A button that somebody pressed, as a message with its value. */
function decodePress({ id, from, data, message }: CallbackQuery): InboundMessage | undefined {
  if (!message || data === undefined) return undefined
  return {
    id: `press:${id}`,
    chat: chatOf(message.chat),
    ...omitUndefined({ threadId: threadOf(message) }),
    sender: personOf(from),
    text: data,
    attachments: [],
    mentionsBot: true,
    replyTo: messageId(message.chat.id, message.message_id),
    sentAt: isoTime(message.date * 1000),
  }
}

function chatOf({ id, type, title }: Chat): InboundMessage['chat'] {
  return { id: String(id), kind: type === 'private' ? 'direct' : 'group', ...omitUndefined({ title }) }
}

function senderOf({ from, sender_chat }: Message): InboundMessage['sender'] | undefined {
  // Channels, and administrators who write as their group, are chats; `from` is then a placeholder of Telegram.
  if (sender_chat)
    return omitUndefined({
      id: String(sender_chat.id),
      name: sender_chat.title ?? String(sender_chat.id),
      handle: sender_chat.username && `@${sender_chat.username}`,
    })
  return from && personOf(from)
}

function personOf({ id, first_name, last_name, username, is_bot }: User): InboundMessage['sender'] {
  const name = [first_name, last_name].filter(Boolean).join(' ')
  return omitUndefined({
    id: String(id),
    name: name || username || String(id),
    handle: username && `@${username}`,
    isBot: is_bot || undefined,
  })
}

/** In groups without topics the thread id only groups replies. */
function threadOf({ is_topic_message, message_thread_id }: Message): string | undefined {
  return is_topic_message && message_thread_id !== undefined ? String(message_thread_id) : undefined
}

/** The message that is answered. Everything in a topic formally answers the message that opened it. */
function repliedMessage({ reply_to_message }: Message): Message['reply_to_message'] {
  return reply_to_message?.forum_topic_created === undefined ? reply_to_message : undefined
}

function textOf(message: Message, bot: Bot): { readonly text: string; readonly mentionsBot: boolean } {
  const { location } = message
  if (location) return { text: `Location: ${location.latitude}, ${location.longitude}`, mentionsBot: false }
  if (message.text !== undefined) return readText(message.text, message.entities, bot)
  return readText(message.caption ?? '', message.caption_entities, bot)
}

type Kind = InboundAttachment['kind']

function attachmentsOf(message: Message): readonly InboundAttachment[] {
  // Sizes of one photo, the largest last.
  const photo = message.photo.at(-1)
  const { animation, document, audio, voice, video, video_note: round, sticker } = message
  const known: readonly (readonly [Kind, File | undefined, string, string])[] = [
    ['image', photo, 'photo.jpg', 'image/jpeg'],
    ['video', animation, 'animation.mp4', 'video/mp4'],
    // An animation is announced as a document once more.
    ['file', animation ? undefined : document, 'file', 'application/octet-stream'],
    ['audio', audio, 'audio.mp3', 'audio/mpeg'],
    ['audio', voice, 'voice.ogg', 'audio/ogg'],
    ['video', video, 'video.mp4', 'video/mp4'],
    ['video', round, 'video.mp4', 'video/mp4'],
    ['image', sticker?.is_video ? undefined : sticker, 'sticker.webp', 'image/webp'],
    ['video', sticker?.is_video ? sticker : undefined, 'sticker.webm', 'video/webm'],
  ]
  return known.flatMap(([kind, file, name, mime]) => (file ? [attachmentOf(kind, file, name, mime)] : []))
}

function attachmentOf(kind: Kind, file: File, name: string, mime: string): InboundAttachment {
  return omitUndefined({
    kind,
    name: file.file_name ?? name,
    mime: file.mime_type ?? mime,
    size: file.file_size,
    reference: { file_id: file.file_id },
  })
}
