import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { MediaKind } from 'svc/providers'
import type { MediaDeps } from './calls.ts'
import { imageInput, speechInput, transcriptInput } from './schema.ts'

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

const agent_id = v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('Id or name of an agent.'))
const write = v.optional(
  v.pipe(v.boolean(), v.description('Write it into a file beside the recording, with times where they are told.')),
  false,
)
const Made = v.object({
  /** What the agent's tool would have said of it. */
  message: v.string(),
  /** In the workspace of the agent. */
  files: v.array(v.string()),
  provider: v.string(),
  model: v.string(),
  /** `null` when no price is known. */
  cost_usd: v.nullable(v.number()),
  /** What is said in a recording. */
  text: v.optional(v.string()),
})
export type MadeMedia = v.InferOutput<typeof Made>

export interface MediaRouteDeps {
  readonly deps: MediaDeps
  /** Aborts when the plugin is unloaded. */
  readonly leaving: AbortSignal
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
    imageRoute(deps),
    speechRoute(deps),
    transcriptionRoute(deps),
  ]
}

const DESCRIPTION =
  'It is done as by the tool of the agent: within its budget, with the cost in its usage, into its workspace; also when ' +
  'you disconnect. With an `Idempotency-Key` nothing is paid for twice: a request that was cut off is answered with 409 ' +
  'when the provider may have been paid.'
const shared = {
  method: 'POST',
  description: DESCRIPTION,
  auth: 'bearer',
  effect: 'conversation',
  cost: 30,
  returns: Made,
  errors: [
    'agent_not_found',
    'file_not_found',
    'conflict',
    'forbidden',
    'payload_too_large',
    'rate_limit',
    'service_unavailable',
  ],
  idempotent: true,
} as const
const recallWith =
  ({ deps }: MediaRouteDeps) =>
  async (id: string) =>
    (await import('./requests.ts')).recallMade(deps, id)

function imageRoute(routes: MediaRouteDeps): AnyRoute {
  return defineRoute({
    ...shared,
    path: '/api/media/images',
    summary: 'Have pictures made for an agent',
    body: v.strictObject({ agent_id, ...imageInput }),
    example: { body: { agent_id: 'assistant', prompt: 'A red kite over the sea', quality: 'low' } },
    recall: recallWith(routes),
    async handle({ body: { agent_id: agent, ...input }, effectId: id }) {
      const { makeFor } = await import('./requests.ts')
      const { createImages } = await import('./images.ts')
      const { deps, leaving: signal } = routes
      return makeFor(deps, { agent, id, signal }, (call) => createImages(deps, input, call))
    },
  })
}

function speechRoute(routes: MediaRouteDeps): AnyRoute {
  return defineRoute({
    ...shared,
    path: '/api/media/speech',
    summary: 'Have a text read aloud for an agent',
    body: v.strictObject({ agent_id, ...speechInput }),
    example: { body: { agent_id: 'assistant', text: 'Good morning.' } },
    recall: recallWith(routes),
    async handle({ body: { agent_id: agent, ...input }, effectId: id }) {
      const { makeFor } = await import('./requests.ts')
      const { speak } = await import('./speech.ts')
      const { deps, leaving: signal } = routes
      return makeFor(deps, { agent, id, signal }, (call) => speak(deps, input, call))
    },
  })
}

function transcriptionRoute(routes: MediaRouteDeps): AnyRoute {
  return defineRoute({
    ...shared,
    path: '/api/media/transcriptions',
    summary: 'Have a recording in the workspace of an agent written down',
    body: v.strictObject({ agent_id, ...transcriptInput, write }),
    example: { body: { agent_id: 'assistant', path: 'talk.mp3', write: true } },
    recall: recallWith(routes),
    async handle({ body: { agent_id: agent, write: isWritten, ...input }, effectId: id }) {
      const { makeFor } = await import('./requests.ts')
      const { transcribe, transcribeToFile } = await import('./transcripts.ts')
      const { deps, leaving: signal } = routes
      return makeFor(deps, { agent, id, signal }, (call) =>
        (isWritten ? transcribeToFile : transcribe)(deps, input, call),
      )
    },
  })
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
