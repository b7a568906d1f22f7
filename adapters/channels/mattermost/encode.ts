import { omitUndefined } from 'svc/sdk'
import { breakMentions } from 'svc/channels'
import type { OutboundMessage } from 'svc/channels'

/** Everybody in a channel is called by these. */
const MASS_MENTION = /@(?=(?:all|channel|here)\b)/gi

/** Nobody is called by what an agent writes to everybody. */
export function encodeText(text: string): string {
  return breakMentions(text, MASS_MENTION)
}

/** The body of `POST /posts`. */
export function encodePost(message: OutboundMessage, botId: string, fileIds: readonly string[]) {
  return omitUndefined({
    channel_id: message.to.chatId,
    message: encodeText(message.text),
    // Always the first post of the thread: the server refuses any other.
    root_id: message.to.threadId ?? message.replyTo,
    // The server answers with the first post when it is sent the same id again within half a minute.
    pending_post_id: `${botId}:${message.id}`,
    file_ids: fileIds.length === 0 ? undefined : fileIds,
  })
}
