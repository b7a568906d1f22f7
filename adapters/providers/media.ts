import type { ProviderClient } from './driver.ts'

/** What a provider makes beside text: pictures, speech, and text from recordings. */
export const MEDIA_KINDS = ['images', 'speech', 'transcription'] as const
export type MediaKind = (typeof MEDIA_KINDS)[number]

/** What a provider makes without being told a model, and the limits of one request. A kind it cannot make is absent. */
export interface MediaOffer {
  readonly images?: { readonly model: string; readonly count: number }
  /** `chars`: the longest text. `voice` is used when none is named. */
  readonly speech?: { readonly model: string; readonly voice: string; readonly chars: number }
  /** `bytes`: the largest recording. */
  readonly transcription?: { readonly model: string; readonly bytes: number }
}

/**
 * What the vendor counted: tokens, or seconds of sound. Both are absent where it does not count. Tokens of sound and of
 * pictures are among the others. `words`: those of `output` that are no picture, where the vendor tells.
 */
export interface MediaUsage {
  readonly tokens?: { readonly input: number; readonly output: number; readonly words?: number }
  readonly seconds?: number
}
export interface ImageRequest {
  readonly model: string
  readonly prompt: string
  readonly count: number
  /** Such as `1024x1024`, in the vendor's words; its default when absent. */
  readonly size?: string
  /** Such as `high`, in the vendor's words; its default when absent. */
  readonly quality?: string
}
/** The bytes of each picture, of whatever type the vendor makes. */
export interface GeneratedImages {
  readonly images: readonly Uint8Array[]
  readonly usage: MediaUsage
}
export const SPEECH_FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav'] as const
export type SpeechFormat = (typeof SPEECH_FORMATS)[number]
export interface SpeechRequest {
  readonly model: string
  readonly text: string
  readonly voice: string
  readonly format: SpeechFormat
}
export interface GeneratedSpeech {
  readonly audio: Uint8Array
  readonly usage: MediaUsage
}
export interface TranscriptionRequest {
  readonly model: string
  readonly audio: Uint8Array
  /** With the ending that tells the vendor the format. */
  readonly filename: string
  readonly mime: string
  /** ISO 639-1, such as `en`; found by the vendor when absent. */
  readonly language?: string
}
/** `segments`, in seconds from the beginning, where the vendor tells them. */
export interface Transcription {
  readonly text: string
  readonly segments?: readonly { readonly start: number; readonly end: number; readonly text: string }[]
  readonly usage: MediaUsage
}

/** Methods of a client that make media, in the order of `MEDIA_KINDS`. */
export interface MediaClient {
  /** Fails like `complete`. */
  createImages?(request: ImageRequest, signal: AbortSignal): Promise<GeneratedImages>
  /** Fails like `complete`. */
  speak?(request: SpeechRequest, signal: AbortSignal): Promise<GeneratedSpeech>
  /** Fails like `complete`. */
  transcribe?(request: TranscriptionRequest, signal: AbortSignal): Promise<Transcription>
}

/** The methods of a client that is loaded with the first call of one of them. */
export function lazyMedia(open: () => Promise<ProviderClient>, kinds: readonly MediaKind[]): MediaClient {
  const lacks = (kind: MediaKind): Error => new Error(`the client has no ${kind}`)
  return {
    ...(kinds.includes('images') && {
      async createImages(request: ImageRequest, signal: AbortSignal) {
        const client = await open()
        if (!client.createImages) throw lacks('images')
        return client.createImages(request, signal)
      },
    }),
    ...(kinds.includes('speech') && {
      async speak(request: SpeechRequest, signal: AbortSignal) {
        const client = await open()
        if (!client.speak) throw lacks('speech')
        return client.speak(request, signal)
      },
    }),
    ...(kinds.includes('transcription') && {
      async transcribe(request: TranscriptionRequest, signal: AbortSignal) {
        const client = await open()
        if (!client.transcribe) throw lacks('transcription')
        return client.transcribe(request, signal)
      },
    }),
  }
}
