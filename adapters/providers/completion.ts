import type { Usage } from './usage.ts'

export interface CompletionRequest {
  readonly model: string
  readonly system: string
  readonly turns: readonly Turn[]
  readonly tools: readonly { readonly name: string; readonly description: string; readonly input: object }[]
  /** Upper limit of the answer in tokens. */
  readonly maxTokens?: number
  readonly temperature?: number
  /** Ask the model to think first, where it can. */
  readonly thinking?: boolean
  /** What the answer must be. A provider that cannot say so to its model ignores it; the caller checks the answer. */
  readonly responseFormat?: ResponseFormat
  /** Further fields for the provider, handed on as they are. They replace nothing that is said above. */
  readonly extra?: Readonly<Record<string, unknown>>
}
export type ResponseFormat =
  | { readonly type: 'json' }
  | {
      readonly type: 'json_schema'
      readonly name: string
      readonly schema: object
      readonly strict?: boolean | undefined
    }
export type Turn =
  | { readonly role: 'user'; readonly parts: readonly Part[] }
  /**
   * `replay` is what this provider and model gave with its `end`, untouched; only while the turn it was made in
   * lasts.
   */
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly ToolCall[]; readonly replay?: string }
  | {
      readonly role: 'tool'
      readonly callId: string
      readonly tool: string
      readonly text: string
      readonly failed: boolean
    }
export type Part =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mime: string; readonly base64: string }
/** `args` is what the model wrote, parsed as JSON when it is JSON and the raw text when it is not. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly args: unknown
}
/**
 * Zero or more text, thinking and call events, then exactly one end. A delta may hold several tokens. `replay` is
 * what the provider has to
 * be given back with this answer when its calls are answered, such as signed thinking: opaque to everyone else, at
 * most 1 MB.
 */
export type CompletionEvent =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'thinking'; readonly delta: string }
  | { readonly type: 'call'; readonly call: ToolCall }
  | {
      readonly type: 'end'
      readonly stop: 'done' | 'length' | 'calls' | 'refused'
      readonly usage: Usage
      readonly replay?: string
    }

/** The pictures that models with eyes take. */
export const pictureTypes: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

/** A conversation written down with its speakers, for models that take a text and no turns. */
export function transcriptOf(turns: readonly Turn[]): string {
  return turns
    .map(transcriptLine)
    .filter((text) => text !== '')
    .join('\n\n')
}
function transcriptLine(turn: Turn): string {
  if (turn.role === 'user') return `User: ${textOfUser(turn)}`
  if (turn.role === 'tool') return `Result of ${turn.tool}${turn.failed ? ' (failed)' : ''}: ${turn.text}`
  const calls = turn.calls.map(
    ({ name, args }) => `[calls ${name} ${typeof args === 'string' ? args : JSON.stringify(args ?? {})}]`,
  )
  return turn.text === '' && calls.length === 0
    ? ''
    : `Assistant: ${[turn.text, ...calls].filter((text) => text !== '').join('\n')}`
}
/**
 * What the user said, when that is nothing but text: many servers read a string and no list. `undefined` where there
 * is an image.
 */
export function plainText(parts: readonly Part[]): string | undefined {
  let text = ''
  for (const part of parts) {
    if (part.type !== 'text') return undefined
    text += text !== '' && part.text !== '' ? `\n\n${part.text}` : part.text
  }
  return text
}
/** What the user said as one text. */
export function textOfUser(turn: Extract<Turn, { role: 'user' }>): string {
  return turn.parts.map((part) => (part.type === 'text' ? part.text : '[picture]')).join('\n')
}
