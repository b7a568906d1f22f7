import { Refusal } from 'svc/sdk'
import type { Message, Part } from './schema.ts'

export interface Question { readonly text: string; readonly images: readonly { readonly mime: string; readonly base64: string }[] }
/** Roles that are not the user's; an unknown one counts as the user's. */
const others = new Set(['system', 'developer', 'assistant', 'tool', 'function'])
const DATA_URL = /^data:(image\/[a-z0-9.+-]+);base64,([A-Za-z0-9+/]+={0,2})$/

/** The last message of the user: the agent keeps its own history. Throws `invalid_request` when there is none. */
export function decodeQuestion(messages: readonly Message[]): Question {
  const last = messages.findLast(({ role }) => !others.has(role))
  const parts: readonly Part[] = typeof last?.content === 'string' ? [{ type: 'text', text: last.content }] : last?.content ?? []
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
  const images = parts.flatMap((part) => (part.type === 'image_url' ? [toImage(part.image_url.url)] : []))
  if (text.trim() === '' && images.length === 0) {
    throw new Refusal('invalid_request', 'messages: there is no message of the user with content', { details: { code: 'missing_message', param: 'messages' } })
  }
  return { text, images }
}

// Decision: an address is refused instead of dropped. The agent would answer about a picture it never saw.
function toImage(url: string): Question['images'][number] {
  const [, mime, base64] = url.match(DATA_URL) ?? []
  if (mime === undefined || base64 === undefined) {
    throw new Refusal('invalid_request', 'messages: an image_url must be a data URL with base64 content', { details: { code: 'invalid_image_url', param: 'messages' } })
  }
  return { mime, base64 }
}
