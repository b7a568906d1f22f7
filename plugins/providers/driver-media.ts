import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import type { GeneratedImages, GeneratedSpeech, Transcription } from 'svc/providers'

const count = v.pipe(v.number(), v.finite(), v.minValue(0))
const usage = v.object({
  tokens: v.exactOptional(v.object({ input: count, output: count, words: v.exactOptional(count) })),
  seconds: v.exactOptional(count),
})
const bytes = v.pipe(
  v.instance(Uint8Array),
  v.check(({ byteLength }) => byteLength > 0, 'is empty'),
)
const Images = v.object({ images: v.pipe(v.array(bytes), v.minLength(1, 'there is none')), usage })
const Speech = v.object({ audio: bytes, usage })
const Transcript = v.object({
  text: v.string(),
  segments: v.exactOptional(v.array(v.object({ start: count, end: count, text: v.string() }))),
  usage,
})

/** What a driver made, checked: drivers come from plugins, and vendors send what they like. */
export function checkImages(provider: string, made: unknown, most: number): GeneratedImages {
  const checked = check(provider, Images, made)
  return { ...checked, images: checked.images.slice(0, most) }
}
export function checkSpeech(provider: string, made: unknown): GeneratedSpeech {
  return check(provider, Speech, made)
}
export function checkTranscription(provider: string, made: unknown): Transcription {
  return check(provider, Transcript, made)
}

function check<S extends v.GenericSchema>(provider: string, schema: S, made: unknown): v.InferOutput<S> {
  const parsed = v.safeParse(schema, made)
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  throw new UpstreamFailure(provider, `${provider} sent ${v.getDotPath(issue) ?? 'something'}: ${issue.message}`, {
    reason: 'malformed',
    retry: 'never',
  })
}
