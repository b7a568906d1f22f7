import { breakMentions } from 'svc/channels'
import type { Destination } from 'svc/channels'
import { DIRECT } from './decode.ts'

/** Where a message or a typing indicator goes. */
export type Address =
  | { readonly type: 'direct'; readonly to: readonly number[] }
  | { readonly type: 'stream'; readonly to: number; readonly topic: string }

export function addressOf({ chatId, threadId }: Destination, topic: string): Address {
  if (chatId.startsWith(DIRECT)) return { type: 'direct', to: chatId.slice(DIRECT.length).split(',').map(Number) }
  return { type: 'stream', to: Number(chatId), topic: threadId ?? topic }
}

/** Nobody is notified by what an agent writes: `@**all**`, `@**Ada**` and `@*group*` call people. */
export function encodeContent(text: string): string {
  return breakMentions(text, /@(?=\*)/g)
}

/** The fields of `POST /messages`. */
export function encodeMessage(address: Address, content: string): URLSearchParams {
  return fieldsOf({ ...address, content })
}

/** The fields of `POST /typing`. */
export function encodeTyping(address: Address): URLSearchParams {
  if (address.type === 'direct') return fieldsOf({ ...address, op: 'start' })
  const { type, to, topic } = address
  return fieldsOf({ type, stream_id: to, topic, op: 'start' })
}

/** A link in the text shows a file. */
export function encodeFile(name: string, path: string): string {
  return `[${name.replaceAll(/[[\]\n]/g, '_')}](${path})`
}

/** A form whose values are JSON, except for texts. */
export function fieldsOf(values: Readonly<Record<string, unknown>>): URLSearchParams {
  return new URLSearchParams(
    Object.entries(values).map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]),
  )
}
