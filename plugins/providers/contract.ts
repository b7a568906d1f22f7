import { defineService, notify } from 'svc/sdk'
import type { CompletionEvent, CompletionRequest, Embeddings, Price } from 'svc/providers'

/** A model that can be called now. */
export interface ResolvedModel {
  readonly provider: string
  readonly model: string
  /** USD per million tokens; `undefined` when nobody knows. */
  readonly price: Price | undefined
  /** Tokens. */
  readonly contextWindow: number
  /** Tokens an answer may have at most; absent when nobody knows. */
  readonly maxOutputTokens?: number
  /** What the manifest overrides, as `resolve` was given it. */
  readonly baseUrl?: string
  readonly apiKeyEnv?: string
}
export interface ProviderState {
  readonly name: string
  readonly title: string
  readonly authStatus: 'configured' | 'missing' | 'no_key_needed'
  /** What is missing and how to get it, where that is a program and no key. */
  readonly lacks?: string
  readonly envVar: string | undefined
  readonly baseUrl: string | undefined
  readonly defaultModel: string
}

/**
 * Vectors, with who made them and what one token of theirs costs. Vectors of different providers or models cannot be
 * compared.
 */
export interface Embedded extends Embeddings {
  readonly provider: string
  readonly model: string
  readonly price: Price | undefined
}

/** What a call waits for before it is made again. */
export interface CallPhase {
  readonly type: 'phase'
  readonly phase: 'retrying' | 'circuit_open' | 'waiting_for_model'
  /** In words for a person. */
  readonly detail: string
  /** ISO 8601 UTC. */
  readonly retryAt?: string
  /** Number of the try that comes next. */
  readonly attempt: number
}
/** What a driver says, and between its tries what is waited for. */
export type InferenceEvent = CompletionEvent | CallPhase

/** Calls models, whoever provides them. Retries and time limits live here and nowhere else. */
export interface Inference {
  /**
   * `default` as provider or model means what the daemon is configured to use, else the first provider with a key,
   * else a
   * local Ollama, else the embedded model. Throws `service_unavailable` with what to do when a named provider cannot
   * be used.
   */
  resolve(choice: {
    readonly provider: string
    readonly model: string
    readonly baseUrl?: string
    readonly apiKeyEnv?: string
  }): Promise<ResolvedModel>
  /**
   * The provider and model a name stands for when an agent of provider `own` is asked for it: a model that provider
   * lists, else
   * an alias, else `provider/model`, else a model of that provider that nobody knows.
   */
  choose(wanted: string, own: string): Promise<{ readonly provider: string; readonly model: string }>
  /** Throws `forbidden` for an address that no provider may be called at, whoever sets it. Sends nothing. */
  admit(baseUrl: string): Promise<void>
  /** One sentence on why there may be no such model; `undefined` when it is known, or nobody can tell. */
  doubt(choice: { readonly provider: string; readonly model: string }): Promise<string | undefined>
  /**
   * Retries with back-off, but never after the first event; `withinMs` is what all of it may take, where that is
   * less than configured. Throws `UpstreamFailure`, or the signal's reason. Exactly one `end`
   * comes last.
   */
  complete(
    model: ResolvedModel,
    request: Omit<CompletionRequest, 'model'>,
    signal: AbortSignal,
    withinMs?: number,
  ): AsyncIterable<InferenceEvent>
  /**
   * One vector for each text, in their order, all of one length; any number of texts, in as many requests as the
   * provider needs. `default`
   * as provider means the one that `[plugins.providers] embedding` names, else the embedded one, which needs no
   * network. Retries as
   * `complete` does and throws what it throws; `invalid_request` when the provider cannot embed. What it costs is
   * for the caller to record.
   */
  embed(
    choice: {
      readonly provider: string
      readonly model: string
      readonly baseUrl?: string
      readonly apiKeyEnv?: string
      readonly purpose?: 'query' | 'document'
    },
    texts: readonly string[],
    signal: AbortSignal,
  ): Promise<Embedded>
  providers(): readonly ProviderState[]
  /** What answers any agent when its own models and fallbacks cannot, in this order. */
  fallbacks(): readonly {
    readonly provider: string
    readonly model: string
    readonly base_url?: string
    readonly api_key_env?: string
  }[]
  /** Why the default cannot be used as it is configured; `undefined` when it can. */
  defaultProblem(): Promise<string | undefined>
  /** What `default` stands for at this moment. */
  defaultModel(): Promise<{ readonly provider: string; readonly model: string }>
}
export const Inference = defineService<Inference>()('inference')

/** A provider was loaded or unloaded, or its key or settings changed. */
export const ProviderChanged = notify<{ readonly provider: string }>('providers:changed')
