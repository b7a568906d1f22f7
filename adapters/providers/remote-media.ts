import * as v from 'valibot'
import type { RemoteEnd } from 'svc/sdk'
import type { ProviderClient } from './driver.ts'
import { MEDIA_KINDS } from './media.ts'
import type { ImageRequest, MediaClient, MediaOffer, SpeechRequest, TranscriptionRequest } from './media.ts'

const count = v.number()
/** As a driver declares it. */
export const RemoteOffer = v.object({
  images: v.exactOptional(v.object({ model: v.string(), count })),
  speech: v.exactOptional(v.object({ model: v.string(), voice: v.string(), chars: count })),
  transcription: v.exactOptional(v.object({ model: v.string(), bytes: count })),
})
const usage = v.object({
  tokens: v.exactOptional(v.object({ input: count, output: count })),
  seconds: v.exactOptional(count),
})
/** Bytes cross as base64. */
const bytes = v.pipe(
  v.string(),
  v.transform((base64): Uint8Array => Buffer.from(base64, 'base64')),
)
const Images = v.object({ images: v.array(bytes), usage })
const Speech = v.object({ audio: bytes, usage })
const Transcript = v.object({
  text: v.string(),
  segments: v.exactOptional(v.array(v.object({ start: count, end: count, text: v.string() }))),
  usage,
})
const encode = (data: Uint8Array): string => Buffer.from(data).toString('base64')

type Handler = (args: readonly unknown[], signal: AbortSignal) => Promise<unknown>

/** In the process of the plugin: the methods of its clients that make media. */
export function exposeMedia(clientOf: (facts: unknown) => ProviderClient): Readonly<Record<string, Handler>> {
  function methodOf<K extends keyof MediaClient>(facts: unknown, name: K): NonNullable<MediaClient[K]> {
    const client = clientOf(facts)
    const method = client[name]
    if (!method) throw new Error(`the provider offers media and has no ${name}`)
    return method.bind(client) as NonNullable<MediaClient[K]>
  }
  return {
    async createImages([facts, request], signal) {
      const made = await methodOf(facts, 'createImages')(request as ImageRequest, signal)
      return { ...made, images: made.images.map(encode) }
    },
    async speak([facts, request], signal) {
      const made = await methodOf(facts, 'speak')(request as SpeechRequest, signal)
      return { ...made, audio: encode(made.audio) }
    },
    async transcribe([facts, request], signal) {
      const { audio, ...rest } = request as Omit<TranscriptionRequest, 'audio'> & { readonly audio: string }
      return methodOf(facts, 'transcribe')({ ...rest, audio: Buffer.from(audio, 'base64') }, signal)
    },
  }
}

/** In the daemon: methods whose calls cross, for what the driver offers. */
export function remoteMedia(
  remote: RemoteEnd,
  { object, facts }: { readonly object: number; readonly facts: object },
  offer: MediaOffer | undefined,
): MediaClient {
  const call = (name: string, request: object, signal: AbortSignal): Promise<unknown> =>
    remote.call(object, name, [facts, request], signal)
  const methods: Required<MediaClient> = {
    createImages: async (request, signal) => v.parse(Images, await call('createImages', request, signal)),
    speak: async (request, signal) => v.parse(Speech, await call('speak', request, signal)),
    transcribe: async ({ audio, ...request }, signal) =>
      v.parse(Transcript, await call('transcribe', { ...request, audio: encode(audio) }, signal)),
  }
  const names = { images: 'createImages', speech: 'speak', transcription: 'transcribe' } as const
  return Object.fromEntries(
    MEDIA_KINDS.filter((kind) => offer?.[kind]).map((kind) => [names[kind], methods[names[kind]]]),
  )
}
