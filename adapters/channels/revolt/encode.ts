import { omitUndefined } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'

/** Splits what the server would notify people of, or refuse from a bot that may not do so. */
const BREAK = '\u200b'

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
  return text.replaceAll(/@(?=everyone|online)/g, `@${BREAK}`).replaceAll(/<(?=[@%])/g, `<${BREAK}`)
}
