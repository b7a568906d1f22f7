import { omitUndefined } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'
import type { GotifyConfig } from './config.ts'
import { OWN_MARK } from './decode.ts'

/** The body of `POST /message`. */
export function encodeMessage({ id, text }: OutboundMessage, { title, priority }: GotifyConfig) {
  return omitUndefined({
    title,
    message: text,
    priority,
    extras: { 'client::display': { contentType: 'text/markdown' }, [OWN_MARK]: id },
  })
}
