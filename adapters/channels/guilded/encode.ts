import { omitUndefined } from 'svc/sdk'
import { breakMentions } from 'svc/channels'
import type { OutboundMessage } from 'svc/channels'

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
  return breakMentions(text, /@(?=everyone|here)|<(?=@)/g)
}
