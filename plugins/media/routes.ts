import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { MediaKind } from 'svc/providers'

const Model = v.nullable(v.object({ provider: v.string(), model: v.string() }))
const Listing = v.object({
  providers: v.array(
    v.object({
      provider: v.string(),
      images: v.nullable(v.string()),
      speech: v.nullable(v.string()),
      transcription: v.nullable(v.string()),
    }),
  ),
  used: v.object({ images: Model, speech: Model, transcription: Model }),
})
export type MediaListing = v.InferOutput<typeof Listing>

export interface MediaRouteDeps {
  usable(kind: MediaKind): readonly { readonly provider: string; readonly model: string }[]
  /** What is used when an agent's own provider cannot do it; `undefined` when nobody can. */
  used(kind: MediaKind): { readonly provider: string; readonly model?: string | undefined } | undefined
}

export function mediaRoutes(deps: MediaRouteDeps): readonly AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/media/providers',
      summary: 'Providers that make pictures, speech and transcriptions, with their usual models',
      auth: 'bearer',
      effect: 'read',
      cost: 1,
      returns: Listing,
      example: {
        returns: {
          providers: [{ provider: 'openai', images: 'gpt-image-2', speech: 'tts-1', transcription: 'whisper-1' }],
          used: {
            images: { provider: 'openai', model: 'gpt-image-2' },
            speech: { provider: 'openai', model: 'tts-1' },
            transcription: { provider: 'openai', model: 'whisper-1' },
          },
        },
      },
      handle: async () => listing(deps),
    }),
  ]
}

function listing({ usable, used }: MediaRouteDeps): MediaListing {
  const kinds = { images: usable('images'), speech: usable('speech'), transcription: usable('transcription') }
  const names = new Set(Object.values(kinds).flatMap((each) => each.map(({ provider }) => provider)))
  const modelOf = (kind: MediaKind, name: string): string | null =>
    kinds[kind].find(({ provider }) => provider === name)?.model ?? null
  const usedFor = (kind: MediaKind): MediaListing['used']['images'] => {
    const choice = used(kind)
    if (!choice) return null
    return { provider: choice.provider, model: choice.model ?? modelOf(kind, choice.provider) ?? '' }
  }
  return {
    providers: [...names].map((provider) => ({
      provider,
      images: modelOf('images', provider),
      speech: modelOf('speech', provider),
      transcription: modelOf('transcription', provider),
    })),
    used: { images: usedFor('images'), speech: usedFor('speech'), transcription: usedFor('transcription') },
  }
}
