import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { Attachment, Download, Received, SlashCommand } from './wire.ts'

const MAX_FILES = 20
export const GROUP = 'g:'

export interface DecodeContext {
  /** Names the event: slash commands have no id. */
  readonly eventId: string
  readonly now: number
}

/** The message of a person; `undefined` for other events. */
export function decodeEvent(raw: unknown, context: DecodeContext): InboundMessage | undefined {
  const received = v.safeParse(Received, raw)
  if (received.success) return decodeMessage(received.output, context)
  const command = v.safeParse(SlashCommand, raw)
  return command.success ? decodeCommand(command.output, context) : undefined
}

function decodeMessage({ userId, message }: Received, { eventId, now }: DecodeContext): InboundMessage | undefined {
  // The token of an event vouches for this user only.
  if (message.from !== userId) return undefined
  const text = (message.text ?? '').trim()
  const attachments = (message.attachments ?? []).flatMap(filesOf).slice(0, MAX_FILES)
  if (text === '' && attachments.length === 0) return undefined
  return {
    id: message.uid || message.id || eventId,
    chat: { id: userId, kind: 'direct' },
    sender: { id: userId, name: userId },
    text,
    attachments,
    mentionsBot: true,
    sentAt: isoTime(typeof message.timestamp === 'number' ? message.timestamp : now),
  }
}

/** In a chat of two people the bot has no place: it answers in its own chat with who wrote. */
function decodeCommand(event: SlashCommand, { eventId, now }: DecodeContext): InboundMessage {
  const { userId, userName, chat, chatName, command, text } = event
  return {
    id: eventId,
    chat: chat.startsWith(GROUP)
      ? omitUndefined({ id: chat, kind: 'group' as const, title: chatName || undefined })
      : { id: userId, kind: 'direct' },
    sender: { id: userId, name: userName || userId },
    text: (text ?? '').trim() || `/${command}`,
    attachments: [],
    mentionsBot: true,
    sentAt: isoTime(now),
  }
}

function filesOf(raw: unknown): readonly InboundAttachment[] {
  const parsed = v.safeParse(Attachment, raw)
  const downloads = parsed.success ? parsed.output.downloads.slice(0, MAX_FILES) : []
  return downloads.flatMap((each) => {
    const file = v.safeParse(Download, each)
    if (!file.success) return []
    const { src, filename, mime, size } = file.output
    const type = mime || 'application/octet-stream'
    const bytes = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0 ? size : undefined
    const info = { kind: attachmentKind(type), name: filename || 'file', mime: type, reference: { url: src } }
    return [omitUndefined({ ...info, size: bytes })]
  })
}
