import { omitUndefined } from 'svc/sdk'
import { breakMentions } from 'svc/channels'
import type { OutboundMessage } from 'svc/channels'
import { conversationOf } from './address.ts'
import type { Written } from './address.ts'

/** A message needs a text. */
const NO_TEXT = '📎'

/** Nobody is notified by what an agent writes: a link to one of these calls a person, a group or everybody. */
const MENTION = /twist-(?=(?:group-)?mention:)/gi

export function encodeContent(text: string): string {
  return breakMentions(text, MENTION)
}

/** The body of `comments/add`, `conversation_messages/add` or `threads/add`. */
export function encodeEntry(
  { to, text }: OutboundMessage,
  kind: Written['kind'],
  attachments: readonly object[],
  title: string,
): object {
  const common = {
    content: text === '' ? NO_TEXT : encodeContent(text),
    attachments: attachments.length === 0 ? undefined : attachments,
  }
  if (kind === 'message') return omitUndefined({ conversation_id: conversationOf(to.chatId), ...common })
  if (kind === 'thread') return omitUndefined({ channel_id: Number(to.chatId), title, ...common })
  // Whoever is answered is told of it, and nobody else.
  const creator = to.replyContext?.['creator']
  const recipients = typeof creator === 'number' ? [creator] : undefined
  return omitUndefined({ thread_id: Number(to.threadId), ...common, recipients })
}
