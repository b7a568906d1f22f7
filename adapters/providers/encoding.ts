import { isObject } from 'svc/sdk'
import type { Part, ToolCall, Turn } from './completion.ts'

/** The media types of images that all models with image input accept. */
export const imageTypes: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

/** A conversation as a transcript, for models that take a text instead of turns. */
export function transcriptOf(turns: readonly Turn[]): string {
  return turns
    .map(transcriptLine)
    .filter((text) => text !== '')
    .join('\n\n')
}
function transcriptLine(turn: Turn): string {
  if (turn.role === 'user') return `User: ${userText(turn)}`
  if (turn.role === 'tool') return `Result of ${turn.tool}${turn.failed ? ' (failed)' : ''}: ${turn.text}`
  const calls = turn.calls.map(
    ({ name, args }) => `[calls ${name} ${typeof args === 'string' ? args : JSON.stringify(args ?? {})}]`,
  )
  return turn.text === '' && calls.length === 0
    ? ''
    : `Assistant: ${[turn.text, ...calls].filter((text) => text !== '').join('\n')}`
}
/** The parts as one string, which more servers accept than a list; `undefined` when there is an image. */
export function plainText(parts: readonly Part[]): string | undefined {
  let text = ''
  for (const part of parts) {
    if (part.type !== 'text') return undefined
    text += text !== '' && part.text !== '' ? `\n\n${part.text}` : part.text
  }
  return text
}
/** A turn of the user as text, with a placeholder for each image. */
export function userText(turn: Extract<Turn, { role: 'user' }>): string {
  return turn.parts.map((part) => (part.type === 'text' ? part.text : '[picture]')).join('\n')
}

/** The parameters of a tool. Vendors want an object schema, also for a tool without parameters. */
export function objectSchema(input: object): Record<string, unknown> {
  return { type: 'object', properties: {}, ...input }
}

/** The arguments of a call for vendors that want an object. Others are sent as its field `input`. */
export function objectArguments(args: ToolCall['args']): Record<string, unknown> {
  if (args === undefined || args === null) return {}
  return isObject(args) ? args : { input: args }
}
/** The arguments of a call for vendors that want JSON text. */
export function jsonArguments(args: ToolCall['args']): string {
  return typeof args === 'string' ? args : JSON.stringify(args ?? {})
}

/**
 * Replaces lone surrogates in encoded JSON, where they stand as escapes: vendors refuse the whole body because of one.
 */
export function wellFormedJson(json: string): string {
  return json.includes('\\ud')
    ? json.replace(/\\(?:\\|ud[89a-f][0-9a-f]{2})/g, (escape) => (escape === '\\\\' ? escape : '\ufffd'))
    : json
}

/** The number for the next id of the form `call_<number>`, so that no id is used twice in a conversation. */
export function nextCallNumber(turns: readonly Turn[]): number {
  let highest = 0
  for (const turn of turns)
    if (turn.role === 'assistant')
      for (const { id } of turn.calls) highest = Math.max(highest, Number(/^call_(\d{1,9})$/.exec(id)?.[1] ?? 0))
  return highest + 1
}

/** Longer turns are not cached: they would hold much memory as long as their conversation is in use. In characters. */
const MAX_CACHED_CHARS = 20_000

/**
 * Encoded turns. Every request repeats the turns of the request before. Each is kept in a property of its turn, which
 * copies and JSON do not have: the table of a `WeakMap` grows to all turns between two collections and stays so large.
 */
export class TurnCache {
  readonly #key = Symbol('encoded')

  get(turn: Turn, encode: (turn: Turn) => string): string {
    const cached = (turn as { readonly [key: symbol]: string | undefined })[this.#key]
    if (cached !== undefined) return cached
    const encoded = encode(turn)
    if (encoded.length <= MAX_CACHED_CHARS) Reflect.defineProperty(turn, this.#key, { value: encoded })
    return encoded
  }
}

/** A message of encoded content blocks, separated by commas. */
export interface EncodedMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/**
 * Messages for vendors whose roles alternate: tool results and what the user says after them are one message, results
 * first. `encode` returns the blocks of a turn; a turn without blocks is left out.
 */
export function alternatingMessages(turns: readonly Turn[], encode: (turn: Turn) => string): readonly EncodedMessage[] {
  const messages: { readonly role: EncodedMessage['role']; readonly results: string[]; readonly blocks: string[] }[] =
    []
  for (const turn of turns) {
    const encoded = encode(turn)
    if (encoded === '') continue
    const role = turn.role === 'assistant' ? 'assistant' : 'user'
    let last = messages.at(-1)
    if (last?.role !== role) messages.push((last = { role, results: [], blocks: [] }))
    if (turn.role === 'tool') last.results.push(encoded)
    else last.blocks.push(encoded)
  }
  return messages.map(({ role, results, blocks }) => ({ role, content: [...results, ...blocks].join(',') }))
}

/** How many messages of the user are marked as places up to which a vendor's prompt cache may reach. */
const CACHED_MESSAGES = 2

/**
 * Encodes messages as a JSON list without its brackets. `mark` changes the content of the last two messages of the
 * user: the newest for the next request, and the one before because the last request wrote the cache up to there.
 */
export function encodeMessages(messages: readonly EncodedMessage[], mark: (content: string) => string): string {
  let marks = CACHED_MESSAGES
  return messages
    .toReversed()
    .map(({ role, content }) => {
      const isMarked = role === 'user' && marks-- > 0
      return `{"role":"${role}","content":[${isMarked ? mark(content) : content}]}`
    })
    .toReversed()
    .join(',')
}
