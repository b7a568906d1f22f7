import type { Embedding } from 'svc/providers'

/** How a vendor's wire departs from OpenAI's. */
export interface Quirks {
  /** Name of the field that limits the answer; `max_tokens` when absent. */
  readonly maxTokensField?: 'max_completion_tokens'
  /** Models, by the beginning of their id, that refuse a temperature. */
  readonly noTemperature?: readonly string[]
  /** It refuses `stream_options`; it then sends its usage unasked or not at all. */
  readonly noStreamOptions?: boolean
  /** What switches thinking on and off; for models whose id begins so, or all. */
  readonly thinking?: { readonly models?: readonly string[]; readonly on: object; readonly off: object }
  /** The field with what a model thought, which it wants back with the results of its calls. */
  readonly replay?: 'reasoning_content' | 'reasoning_details'
  /** Ids of calls have to be nine letters and digits, so others are made to be that. */
  readonly shortCallIds?: boolean
  /** Its models cannot call tools and it refuses to be told of any. */
  readonly noTools?: boolean
  /** It has no list of models. */
  readonly noModels?: boolean
  /** It embeds nothing. */
  readonly noEmbeddings?: boolean
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
}
export interface Vendor extends Quirks {
  readonly name: string
  readonly title: string
  /** Variable with the key. Absent: it needs none. */
  readonly envVar?: string
  readonly otherEnvVars?: readonly string[]
  /** The variable is there for other tools too. */
  readonly sharedKey?: true
  /** Absent: it has to be configured. */
  readonly baseUrl?: string
  /** Variable with the address. */
  readonly addressVar?: string
  /** The address of a customer who is told by `account_id` in the section, or by this variable. */
  readonly account?: { readonly variable: string; readonly url: (account: string) => string }
  /** How its methods are addressed and opened, where that is more than a path and a bearer key. */
  readonly access?: 'azure' | 'copilot'
  readonly defaultModel: string
  readonly embedding?: Embedding
}
