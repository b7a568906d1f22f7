import { defineService, notify } from 'svc/sdk'
import type {
  CompletionEvent,
  CompletionRequest,
  Embeddings,
  GeneratedImages,
  GeneratedSpeech,
  ImageRequest,
  MediaKind,
  MediaOffer,
  Price,
  SpeechRequest,
  Transcription,
  TranscriptionRequest,
} from 'svc/providers'

/** A model that can be called now. */
export interface ResolvedModel {
  readonly provider: string
  readonly model: string
  /** USD per million tokens; `undefined` when unknown. */
  readonly price: Price | undefined
  /** Tokens. */
  readonly contextWindow: number
  /** Limit of an answer in tokens; absent when unknown. */
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
/** The events of a driver, and between attempts what is waited for. */
export type InferenceEvent = CompletionEvent | CallPhase

/** Calls models of any provider. Retries and time limits live here and nowhere else. */
export interface Inference {
  /**
   * `default` as provider or model means what the daemon is configured to use, else the first provider with a key, else
   * a local Ollama, else the embedded model. Throws `service_unavailable` with what to do when a named provider cannot
   * be used.
   */
  resolve(choice: {
    readonly provider: string
    readonly model: string
    readonly baseUrl?: string
    readonly apiKeyEnv?: string
  }): Promise<ResolvedModel>
  /**
   * The provider and model that a name resolves to for an agent of provider `own`: a model that provider lists, else an
   * alias, else `provider/model`, else an unknown model of that provider.
   */
  choose(requested: string, own: string): Promise<{ readonly provider: string; readonly model: string }>
  /** Throws `forbidden` for an address that no provider may be called at, whatever its source. Sends nothing. */
  admit(baseUrl: string): Promise<void>
  /** A warning that there may be no such model; `undefined` when it is known, or cannot be checked. */
  doubt(choice: { readonly provider: string; readonly model: string }): Promise<string | undefined>
  /**
   * Retries with back-off, but never after the first event; `withinMs` is what all of it may take, where that is less
   * than configured. Throws `UpstreamFailure`, or the signal's reason. Exactly one `end` comes last.
   */
  complete(
    model: ResolvedModel,
    request: Omit<CompletionRequest, 'model'>,
    signal: AbortSignal,
    withinMs?: number,
  ): AsyncIterable<InferenceEvent>
  /**
   * One vector for each text, in their order, all of one length; any number of texts, in as many requests as the
   * provider needs. `default` as provider means the one that `[plugins.providers] embedding` names, else the embedded
   * one, which needs no network. Retries as `complete` does and throws what it throws; `invalid_request` when the
   * provider cannot embed. What it costs is for the caller to record.
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
  /** What `default` resolves to now. */
  defaultModel(): Promise<{ readonly provider: string; readonly model: string }>
}
export const Inference = defineService<Inference>()('inference')

/** Keys that come from elsewhere, such as another system on the machine. */
export interface ProviderKeys {
  /** The provider whose key a variable of the environment has, such as `OPENAI_API_KEY`. */
  named(variable: string): Promise<string | undefined>
  /**
   * Stores the key of a provider that has none, as `POST /api/providers/{name}/key` does: `added`. One that has a key
   * (`configured`) or needs none (`no_key_needed`) stays as it is; `unknown`: there is no such provider. `isCheck`
   * stores nothing.
   */
  add(
    provider: string,
    key: string,
    options?: { readonly isCheck?: boolean },
  ): Promise<'added' | 'unknown' | 'configured' | 'no_key_needed'>
}
export const ProviderKeys = defineService<ProviderKeys>()('provider-keys')

/** A provider, and one of its models where that is not its usual one. */
export interface MediaChoice {
  readonly provider: string
  readonly model?: string | undefined
}
/** `withinMs` is what all of it may take. */
export interface MediaCallOptions {
  readonly signal: AbortSignal
  readonly withinMs: number
}
/**
 * Models that make pictures, speech and transcriptions. A call that may have been paid for is not made again: it is
 * tried again only after the provider refused it. What it costs is for the caller to record.
 */
export interface MediaModels {
  /**
   * Providers that have their key and declare what is asked for, with their usual models: the first one is used when
   * none is named. Looks at nothing outside.
   */
  usable(kind: MediaKind): readonly { readonly provider: string; readonly model: string }[]
  /** What a provider declares, with its limits. */
  offer(provider: string): MediaOffer | undefined
  /** Throws `service_unavailable` with what to do when the provider cannot be used. */
  resolve(kind: MediaKind, choice: MediaChoice): Promise<ResolvedModel>
  /** At least one picture and at most `count`. Throws `UpstreamFailure`, or the signal's reason. */
  createImages(
    model: ResolvedModel,
    request: Omit<ImageRequest, 'model'>,
    options: MediaCallOptions,
  ): Promise<GeneratedImages>
  speak(
    model: ResolvedModel,
    request: Omit<SpeechRequest, 'model'>,
    options: MediaCallOptions,
  ): Promise<GeneratedSpeech>
  transcribe(
    model: ResolvedModel,
    request: Omit<TranscriptionRequest, 'model'>,
    options: MediaCallOptions,
  ): Promise<Transcription>
}
export const MediaModels = defineService<MediaModels>()('media-models')

/**
 * A provider was loaded or unloaded, or its key or settings changed. `provider` is empty where another daemon on the
 * database changed something.
 */
export const ProviderChanged = notify<{ readonly provider: string }>('providers:changed')
