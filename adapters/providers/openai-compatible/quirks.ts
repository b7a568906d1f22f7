import type { Embedding, MediaOffer } from 'svc/providers'

/** How a vendor's format departs from OpenAI's. */
export interface Quirks {
  /** The field that limits the answer; `max_tokens` when absent. */
  readonly maxTokensField?: 'max_completion_tokens'
  /** Prefixes of the ids of models that refuse a temperature. */
  readonly noTemperature?: readonly string[]
  /** It refuses `stream_options`, and sends its usage without them or not at all. */
  readonly noStreamOptions?: boolean
  /** The fields that switch thinking on and off, for models with one of these prefixes or for all. */
  readonly thinking?: { readonly models?: readonly string[]; readonly on: object; readonly off: object }
  /** The field with thinking that has to be sent back with the results of calls. */
  readonly replay?: 'reasoning_content' | 'reasoning_details'
  /** Call ids have to be nine letters and digits; others are hashed to that form. */
  readonly shortCallIds?: boolean
  /** Its models cannot call tools, and it refuses requests with tools. */
  readonly noTools?: boolean
  /** It tells the times of a transcription without `response_format`, which it refuses, and only without a language. */
  readonly plainTranscriptions?: boolean
  /** It has no list of models. */
  readonly noModels?: boolean
  /** It has no embeddings. */
  readonly noEmbeddings?: boolean
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
}
export interface Vendor extends Quirks {
  readonly name: string
  readonly title: string
  /** The variable with the key. Absent: no key is needed. */
  readonly envVar?: string
  readonly otherEnvVars?: readonly string[]
  /** The variable is also used by other tools. */
  readonly sharedKey?: true
  /** Absent: it has to be configured. */
  readonly baseUrl?: string
  /** The variable with the address. */
  readonly addressVar?: string
  /** The address of an account, whose id is `account_id` in the section or in this variable. */
  readonly account?: { readonly variable: string; readonly url: (account: string) => string }
  /** Addresses and authentication, where they are more than a path and a bearer token. */
  readonly access?: 'azure' | 'copilot'
  readonly defaultModel: string
  readonly embedding?: Embedding
  readonly media?: MediaOffer
}
