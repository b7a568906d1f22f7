import { UpstreamFailure } from 'svc/sdk'
import type { Destination } from 'svc/channels'

/** Before the id of a group in that of its chat. Direct chats have the id of the person. */
export const GROUP = 'group.'
const QUOTE_CHARS = 200

/** Where a message goes. */
export type Address = { readonly groupId: string } | { readonly recipient: string }

export function addressOf({ chatId }: Destination): Address {
  return chatId.startsWith(GROUP) ? { groupId: chatId.slice(GROUP.length) } : { recipient: chatId }
}

/** A message is known by its time and its author. */
export interface MessageRef {
  readonly timestamp: number
  readonly author: string
}
export function encodeRef({ timestamp, author }: MessageRef): string {
  return `${timestamp}:${author}`
}
export function decodeRef(id: string): MessageRef {
  const [, timestamp, author] = /^(\d{1,15}):(\S+)$/.exec(id) ?? []
  if (timestamp !== undefined && author !== undefined) return { timestamp: Number(timestamp), author }
  throw new UpstreamFailure('signal', `"${id}" is not the id of a message of Signal`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}

/** What is shown of the message that is answered: clients do not look it up. */
export function toQuote(text: string): string {
  return Array.from(text.slice(0, 2 * QUOTE_CHARS))
    .slice(0, QUOTE_CHARS)
    .join('')
}

/** A file as RFC 2397 writes it, with its name. */
export function encodeFile(mime: string, name: string, bytes: Uint8Array): string {
  const [type = ''] = mime.split(';', 1)
  return `data:${type};filename=${name};base64,${Buffer.from(bytes).toString('base64')}`
}
