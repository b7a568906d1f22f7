import { mediaTypeOf } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import { choosePlace, costText, fileStem, limitOf, makeOnce } from './calls.ts'
import type { Made, MediaDeps } from './calls.ts'
import { imageTokens, priceOf } from './prices.ts'

export interface ImageInput {
  readonly prompt: string
  readonly model?: string | undefined
  readonly size?: string | undefined
  readonly quality?: string | undefined
  readonly count: number
}
const endings: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
}

/** Makes pictures into the workspace. */
export async function createImages(deps: MediaDeps, input: ImageInput, call: ToolCallContext): Promise<Made> {
  const { config, media, workspaces } = deps
  const { prompt, size, quality, count } = input
  const place = await choosePlace(deps, 'images', call.agentId, input.model)
  const { model, offer } = place
  const limit = limitOf(config.max_images, 'max_images', offer.images?.count, model.provider)
  if (count > limit.max)
    throw new Refusal('invalid_request', `count: at most ${limit.max} pictures in one call (${limit.by})`)
  const price = priceOf(config.prices, model.provider, model.model)
  return makeOnce(deps, call, {
    tool: 'image_generate',
    kind: 'images',
    place,
    most: { images: count, usage: { tokens: imageTokens(prompt, count, quality, price) } },
    make: (options) =>
      media.createImages(
        model,
        { prompt, count, ...(size !== undefined && { size }), ...(quality !== undefined && { quality }) },
        options,
      ),
    amount: ({ images, usage }) => ({ images: images.length, usage }),
    async keep({ images }, costUsd) {
      const stem = fileStem('image', call)
      const files: string[] = []
      for (const [index, bytes] of images.entries()) {
        const type = await mediaTypeOf(bytes)
        const ending = endings[type]
        // The vendor says what it likes of its bytes.
        if (ending === undefined)
          throw new UpstreamFailure(model.provider, `${model.provider} sent ${type} instead of a picture`, {
            reason: 'malformed',
            retry: 'never',
          })
        const name = `${stem}${images.length === 1 ? '' : `-${index + 1}`}.${ending}`
        await workspaces.write(call.agentId, name, bytes)
        files.push(name)
      }
      const made = files.map((name, index) => `${name} (${images[index]?.byteLength ?? 0} bytes)`).join(', ')
      return { files, text: `Made ${made} with ${model.provider}/${model.model}, ${costText(costUsd)}.` }
    },
  })
}
