import * as v from 'valibot'
import { omitUndefined, readJson } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { ButtonValue, File } from './wire.ts'
import type { Channel, Interaction, Posted, SlashCommand, User } from './wire.ts'

const MENTION = /<<@([\w-]{1,64})>>/g
const MAX_MENTIONS = 1000
const MAX_FILES = 20

/** What is looked up for a message: it has ids only. */
export interface Around {
  readonly botId: string
  /** Absent where the bot may not read it. */
  readonly channel?: Channel | undefined
  readonly user?: User | undefined
  readonly files?: readonly unknown[]
}

/** Whether a message is of a person, and worth looking up what is around it. */
export function isOfPerson({ aId: author, st: subtype, eph: isEphemeral }: Posted, botId: string): boolean {
  return author !== botId && !subtype && isEphemeral !== true
}

export function decodeMessage(posted: Posted, around: Around, isEdit: boolean): InboundMessage | undefined {
  const { botId, files = [] } = around
  const { mId: id, cId: channelId, trId: threadId, aId: author, tx } = posted
  const chat = chatOf(channelId, around)
  const attachments = files.slice(0, MAX_FILES).flatMap((raw) => decodeFile(raw, channelId, id))
  const { text, isMentioned } = readText(tx ?? '', botId)
  const isInList = (posted.md ?? []).slice(0, MAX_MENTIONS).includes(botId)
  const mentionsBot = chat.kind === 'direct' || isMentioned || isInList
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id,
    chat,
    threadId: threadId || undefined,
    sender: senderOf(author, around),
    text,
    attachments,
    mentionsBot,
    sentAt: isoTime(typeof posted.tsm === 'number' ? posted.tsm : 0),
    isEdit: isEdit || undefined,
  })
}

export function decodeCommand(command: SlashCommand, around: Around, now: number): InboundMessage {
  return omitUndefined({
    id: command.triggerId,
    chat: chatOf(command.channelId, around),
    threadId: command.threadRootId || undefined,
    sender: senderOf(command.userId, around),
    text: `${command.slashCommand} ${command.text ?? ''}`.trim(),
    attachments: [],
    mentionsBot: true,
    sentAt: isoTime(now),
  })
}

/** The press of a button as a message with its value. */
export function decodePress(press: Interaction, around: Around, now: number): InboundMessage | undefined {
  const value = readValue(press.payload)
  if (value === undefined) return undefined
  return {
    id: press.triggerId,
    chat: chatOf(press.channelId, around),
    sender: senderOf(press.userId, around),
    text: value,
    attachments: [],
    mentionsBot: true,
    replyTo: press.sourceId,
    sentAt: isoTime(now),
  }
}

function readValue(payload: string): string | undefined {
  try {
    const parsed = v.safeParse(ButtonValue, readJson(payload))
    return parsed.success ? parsed.output.value : undefined
  } catch {
    return undefined
  }
}

/** A direct channel may have several people. */
function chatOf(id: string, { channel }: Around): InboundMessage['chat'] {
  const isDirect = channel?.channel.channelType === 'DIRECT' && (channel.users ?? []).length <= 2
  if (isDirect) return { id, kind: 'direct' }
  return omitUndefined({ id, kind: 'group' as const, title: channel?.channel.name || undefined })
}

function senderOf(id: string, { user }: Around): InboundMessage['sender'] {
  const isBot = user?.isAddonBot === true || user?.isPumbleBot === true
  return omitUndefined({ id, name: user?.name || id, handle: user?.email || undefined, isBot: isBot || undefined })
}

/** The text without the mention of the bot; those of others are `@id`. */
function readText(written: string, botId: string): { readonly text: string; readonly isMentioned: boolean } {
  let isMentioned = false
  const text = written
    .replace(MENTION, (_, id: string) => {
      if (id !== botId) return `@${id}`
      isMentioned = true
      return ''
    })
    .trim()
  // What is addressed to the bot begins with its name and often a comma.
  return { text: isMentioned ? text.replace(/^[,:]\s*/, '') : text, isMentioned }
}

function decodeFile(raw: unknown, channel: string, message: string): readonly InboundAttachment[] {
  const parsed = v.safeParse(File, raw)
  if (!parsed.success) return []
  const { id: file, name, mimeType, size } = parsed.output
  const mime = mimeType || 'application/octet-stream'
  const info = { kind: attachmentKind(mime), name: name || 'file', mime, reference: { channel, message, file } }
  return [omitUndefined({ ...info, size: size ?? undefined })]
}
