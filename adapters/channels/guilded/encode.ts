import { omitUndefined } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'

/** Splits what would notify people. */
const BREAK = '\u200b'

/** The body of `POST /channels/{id}/messages`. */
export function encodeMessage({ text, replyTo }: Pick<OutboundMessage, 'text' | 'replyTo'>) {
  return omitUndefined({
    content: encodeContent(text),
    replyMessageIds: replyTo === undefined ? undefined : [replyTo],
    isSilent: true,
  })
}

/** Nobody is notified by what an agent writes. */
export function encodeContent(text: string): string {
  return text.replaceAll(/@(?=everyone|here)/g, `@${BREAK}`).replaceAll(/<(?=@)/g, `<${BREAK}`)
}
