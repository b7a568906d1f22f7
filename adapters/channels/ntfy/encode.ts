import type { OutboundAttachment, OutboundMessage } from 'svc/channels'
import { OWN_TAG } from './decode.ts'

/** The JSON that publishes a text. */
export function encodeText({ to, text }: OutboundMessage) {
  return { topic: to.chatId, message: text, markdown: true, tags: [OWN_TAG] }
}

/** The path and query that publish a file. A query takes every character, and a header does not. */
export function encodeFilePath({ to, text }: OutboundMessage, { name }: OutboundAttachment): string {
  const query = new URLSearchParams({ filename: name, tags: OWN_TAG, markdown: 'yes' })
  if (text !== '') query.set('message', text)
  return `/${encodeURIComponent(to.chatId)}?${query.toString()}`
}

/** The header of a token, or of a user with a password. */
export function encodeCredentials(token: string | undefined): Readonly<Record<string, string>> {
  if (token === undefined) return {}
  const isPassword = token.includes(':')
  return { authorization: isPassword ? `Basic ${Buffer.from(token).toString('base64')}` : `Bearer ${token}` }
}
