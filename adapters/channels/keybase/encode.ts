import { UpstreamFailure } from 'svc/sdk'
import { breakMentions } from 'svc/channels'

/** Messages are numbered within their conversation. */
export function encodeId(conversation: string, id: number): string {
  return `${conversation}:${id}`
}
export function decodeId(id: string): number {
  const number = /^[0-9a-f]+:(\d{1,15})$/.exec(id)?.[1]
  if (number !== undefined) return Number(number)
  throw new UpstreamFailure('keybase', `"${id}" is not the id of a message of Keybase`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}

/** Names that notify everybody in a channel. */
const EVERYBODY = /@(?=(?:here|channel|everyone)\b)/gi

export function encodeBody(text: string): string {
  return breakMentions(text, EVERYBODY)
}
