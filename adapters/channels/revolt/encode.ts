import { omitUndefined } from 'svc/sdk'
import { breakMentions } from 'svc/channels'
import type { OutboundMessage } from 'svc/channels'

/** What the server would notify people of, or refuse from a bot that may not do so. */
const MENTION = /@(?=everyone|online)|<(?=[@%])/g

/** The body of `POST /channels/{id}/messages`. */
export function encodeMessage(text: string, files: readonly string[], { replyTo }: Pick<OutboundMessage, 'replyTo'>) {
  return omitUndefined({
    content: text === '' ? undefined : encodeContent(text),
    attachments: files.length === 0 ? undefined : files,
    replies: replyTo === undefined ? undefined : [{ id: replyTo, mention: false, fail_if_not_exists: false }],
  })
}

/** Nobody is notified by what an agent writes. */
export function encodeContent(text: string): string {
  return breakMentions(text, MENTION)
}
