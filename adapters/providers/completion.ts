import type { Usage } from './usage.ts'

export interface CompletionRequest {
  readonly model: string
  readonly system: string
  readonly turns: readonly Turn[]
  readonly tools: readonly { readonly name: string; readonly description: string; readonly input: object }[]
  /** The limit of the answer in tokens. */
  readonly maxTokens?: number
  readonly temperature?: number
  /** Whether a model that can think does; its default when absent. */
  readonly thinking?: boolean
  /** The required format. Providers without such a feature ignore it; the caller checks the answer. */
  readonly responseFormat?: ResponseFormat
  /** Further fields of the vendor's request, passed on as they are. They do not override the fields above. */
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
  /** `replay` is what this provider and model returned with `end`, unchanged; only present within the same turn. */
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
/** `args` are parsed when the model wrote JSON, and the raw text when it did not. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly args: unknown
}
/**
 * Any number of text, thinking and call events, then exactly one end. A delta may hold several tokens. `replay` is what
 * the provider needs back together with this answer and the results of its calls, such as signed thinking: opaque to
 * everyone else, at most 1 MB.
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
