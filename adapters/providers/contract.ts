// The interface of drivers of model providers, as `svc/providers`; beside it they see `svc/sdk`.

// Completion requests and their events
export type { CompletionEvent, CompletionRequest, Part, ResponseFormat, ToolCall, Turn } from './completion.ts'

// A driver and its plugin
export { defineProvider, defineProviders, lazyClient, Providers } from './driver.ts'
export type {
  DeviceSignIn,
  DriverDeps,
  Embedding,
  EmbeddingRequest,
  Embeddings,
  ProviderClient,
  ProviderDriver,
  ProviderLink,
  ProviderRegistry,
} from './driver.ts'

// Pictures, speech and transcriptions
export { MEDIA_KINDS, SPEECH_FORMATS } from './media.ts'
export type {
  GeneratedImages,
  GeneratedSpeech,
  ImageRequest,
  MediaClient,
  MediaKind,
  MediaOffer,
  MediaUsage,
  SpeechFormat,
  SpeechRequest,
  Transcription,
  TranscriptionRequest,
} from './media.ts'

// Encoding of requests
export {
  alternatingMessages,
  encodeMessages,
  imageTypes,
  jsonArguments,
  nextCallNumber,
  objectArguments,
  objectSchema,
  plainText,
  transcriptOf,
  TurnCache,
  userText,
  wellFormedJson,
} from './encoding.ts'
export type { EncodedMessage } from './encoding.ts'

// The HTTP client of a vendor's API
export {
  ApiClient,
  baseUrlOf,
  bearerToken,
  chooseModel,
  collectPages,
  embeddableText,
  embeddingUsage,
  probeCompletion,
} from './api-client.ts'
export type { ApiClientOptions, ApiHeaders, ApiRequest, Expected } from './api-client.ts'
export { failureClass, failureInAnswer, reasonOfStatus, toUpstreamFailure } from './api-failure.ts'
export type { ClassifiedFailure, FailureClass, FailureClassifier } from './api-failure.ts'
export { TokenCache } from './token-cache.ts'
export type { ExpiringToken } from './token-cache.ts'

// Decoding of streamed answers
export type { FieldsOf } from './fields-of.ts'
export { AnswerDecoder } from './answer-decoder.ts'
export type { AnswerEnd, AnswerReader } from './answer-decoder.ts'
export { BlockDecoder } from './block-decoder.ts'
export type { ThinkingBlock } from './block-decoder.ts'
export { replayFormat } from './replay.ts'
export type { ReplayFormat, ReplayPosition } from './replay.ts'
export { readStreamed } from './streamed-answer.ts'
export type { StreamDecoder } from './streamed-answer.ts'
export { StreamedText } from './streamed-text.ts'
export type { TextEvent } from './streamed-text.ts'
export { readArgs } from './tool-calls.ts'
export type { OpenCall } from './tool-calls.ts'

// Tokens and prices
export { costNano, estimateTokens, estimateUsage, isPlausible, toUsd, usageOf } from './usage.ts'
export type { Price, Rates, TokenCounts, Usage } from './usage.ts'
