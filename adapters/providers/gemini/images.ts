import * as v from 'valibot'
import { Refusal, shortened, UpstreamFailure } from 'svc/sdk'
import type { ApiClient, GeneratedImages, ImageRequest, MediaUsage, ProviderClient } from 'svc/providers'
import type { Endpoint } from './endpoint.ts'
import { promptBlocked } from './errors.ts'
import { WireUsage } from './wire.ts'

const Text = v.nullish(v.string())
const ImageUsage = v.object({
  ...WireUsage.entries,
  candidatesTokensDetails: v.nullish(v.array(v.object({ modality: Text, tokenCount: v.nullish(v.number()) }))),
})
const Answer = v.object({
  candidates: v.nullish(
    v.array(
      v.object({
        content: v.nullish(
          v.object({
            parts: v.nullish(
              v.array(
                v.object({
                  text: Text,
                  thought: v.nullish(v.boolean()),
                  inlineData: v.nullish(v.object({ data: Text })),
                }),
              ),
            ),
          }),
        ),
        finishReason: Text,
        finishMessage: Text,
      }),
    ),
  ),
  promptFeedback: v.nullish(v.object({ blockReason: Text, blockReasonMessage: Text })),
  usageMetadata: v.nullish(v.unknown()),
})
type Candidate = NonNullable<NonNullable<v.InferOutput<typeof Answer>['candidates']>[number]>

/**
 * Pictures through `generateContent`, one for each request.
 * Source: https://ai.google.dev/gemini-api/docs/image-generation
 */
export function createImager(
  name: string,
  endpoint: Endpoint,
  api: ApiClient,
): NonNullable<ProviderClient['createImages']> {
  return async ({ model, prompt, count, size, quality }, signal) => {
    signal.throwIfAborted()
    if (count !== 1)
      throw new Refusal('invalid_request', `count: ${name} makes one picture in a call: ask once for each`)
    if (quality !== undefined)
      throw new Refusal('invalid_request', `quality: ${name} knows none: leave it out, or ask for a size of 2K or 4K`)
    const imageConfig = size === undefined ? undefined : imageConfigOf(name, size)
    const body = {
      contents: [{ role: 'user', parts: [{ text: prompt }] }],
      generationConfig: { responseModalities: ['IMAGE'], ...(imageConfig && { imageConfig }) },
    }
    const { candidates, promptFeedback, usageMetadata } = await api.json(
      await endpoint.methodUrl(model, 'generateContent', signal),
      { signal, accept: '*/*', body: JSON.stringify(body) },
      { schema: Answer, what: 'a picture' },
    )
    if (promptFeedback?.blockReason)
      throw promptBlocked(name, promptFeedback.blockReason, promptFeedback.blockReasonMessage)
    const [candidate] = candidates ?? []
    return { images: picturesOf(name, candidate), usage: usageOf(usageMetadata) }
  }
}

/** Pictures of thoughts are drafts. */
function picturesOf(name: string, candidate: Candidate | undefined): GeneratedImages['images'] {
  const parts = candidate?.content?.parts ?? []
  const images = parts.flatMap(({ thought, inlineData }) =>
    thought !== true && inlineData?.data ? [Buffer.from(inlineData.data, 'base64')] : [],
  )
  if (images.length > 0) return images
  const said = candidate?.finishMessage ?? parts.find(({ text }) => text)?.text
  const why = `${name} made no picture (${candidate?.finishReason ?? 'no reason given'})`
  throw new UpstreamFailure(name, said ? `${why}: ${shortened(said)}` : why, {
    reason: 'content_filter',
    retry: 'never',
  })
}

// Source: `ImageConfigAspectRatio` and `ImageConfigImageSize` of Google's firebase-js-sdk.
const RATIOS = '1:1 1:4 1:8 2:3 3:2 3:4 4:1 4:3 4:5 5:4 8:1 9:16 16:9 21:9'.split(' ')
const SIZES = ['512', '1K', '2K', '4K']
/** Pixels of the longer side above which a picture is a larger one. */
const ABOVE_1K = 1536
const ABOVE_2K = 3072

/** `16:9`, `2K`, `16:9/2K`, or pixels as other vendors have them. */
function imageConfigOf(name: string, size: ImageRequest['size'] & string): object {
  const [, width = 0, height = 0] = (/^(\d{1,5})x(\d{1,5})$/.exec(size) ?? []).map(Number)
  if (width > 0 && height > 0) {
    const divisor = greatestDivisor(width, height)
    const aspectRatio = `${width / divisor}:${height / divisor}`
    const side = Math.max(width, height)
    const imageSize = side > ABOVE_2K ? '4K' : side > ABOVE_1K ? '2K' : undefined
    if (RATIOS.includes(aspectRatio)) return { aspectRatio, ...(imageSize && { imageSize }) }
  }
  const words = size.split('/')
  const aspectRatio = words.find((word) => RATIOS.includes(word))
  const imageSize = words.find((word) => SIZES.includes(word.toUpperCase()))?.toUpperCase()
  if ([aspectRatio, imageSize].filter(Boolean).length === words.length)
    return { ...(aspectRatio && { aspectRatio }), ...(imageSize && { imageSize }) }
  throw new Refusal(
    'invalid_request',
    `size: ${name} takes one of ${RATIOS.join(', ')}, one of ${SIZES.join(', ')}, or both as in 16:9/2K`,
  )
}
const greatestDivisor = (one: number, other: number): number =>
  other === 0 ? one : greatestDivisor(other, one % other)

/** What is not a picture costs less: words and thoughts. */
function usageOf(wire: unknown): MediaUsage {
  const usage = v.safeParse(ImageUsage, wire)
  if (!usage.success) return {}
  const { promptTokenCount, candidatesTokenCount, thoughtsTokenCount, candidatesTokensDetails } = usage.output
  if (promptTokenCount == null || candidatesTokenCount == null) return {}
  const counts = [promptTokenCount, candidatesTokenCount, thoughtsTokenCount ?? 0]
  if (counts.some((count) => count < 0)) return {}
  const thoughts = thoughtsTokenCount ?? 0
  const drawn = candidatesTokensDetails?.find(({ modality }) => modality === 'IMAGE')?.tokenCount
  const words = drawn == null ? 0 : Math.max(0, candidatesTokenCount - drawn)
  return { tokens: { input: promptTokenCount, output: candidatesTokenCount + thoughts, words: thoughts + words } }
}
