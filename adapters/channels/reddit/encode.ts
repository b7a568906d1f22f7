import { UpstreamFailure } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'
import { PERSON } from './decode.ts'

/** A request that sends a message. */
export interface Encoded {
  readonly path: '/api/comment' | '/api/compose'
  readonly fields: URLSearchParams
}

/** `parent` is the comment, post or private message that is answered. */
export function encodeMessage({ to, text }: OutboundMessage, parent: string | undefined, subject: string): Encoded {
  if (parent !== undefined)
    return { path: '/api/comment', fields: new URLSearchParams({ api_type: 'json', thing_id: parent, text }) }
  if (!to.chatId.startsWith(PERSON))
    throw new UpstreamFailure('reddit', 'A comment on Reddit needs a post or a comment that it answers', {
      reason: 'invalid_request',
      retry: 'never',
    })
  const name = to.chatId.slice(PERSON.length)
  return { path: '/api/compose', fields: new URLSearchParams({ api_type: 'json', to: name, subject, text }) }
}
