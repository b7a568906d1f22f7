import * as v from 'valibot'
import { defineProviders, lazyClient } from 'svc/providers'
import type { ProviderDriver, ProviderLink } from 'svc/providers'

const media = { images: { model: 'gemini-nano-banana-2.1', count: 1 } }
const embedding = { model: 'gemini-embedding-001', texts: 100, chars: 200_000 }

/** The Gemini API with a key. Source: https://ai.google.dev/api/generate-content */
export const gemini: ProviderDriver = {
  name: 'gemini',
  title: 'Google Gemini',
  envVar: 'GEMINI_API_KEY',
  otherEnvVars: ['GOOGLE_API_KEY'],
  baseUrl: 'https://generativelanguage.googleapis.com',
  defaultModel: 'gemini-2.5-flash',
  embedding,
  media,
  config: v.object({}),
  connect: (link) =>
    lazyClient(
      async () => {
        const [{ createClient }, { keyEndpoint }] = await Promise.all([import('./client.ts'), import('./endpoint.ts')])
        return createClient(keyEndpoint(link), link, gemini.defaultModel)
      },
      { models: true, embed: true, media: ['images'] },
    ),
}

const VertexConfig = v.object({
  project: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[a-z0-9.:-]+$/, 'expected the id of a Google Cloud project'),
      v.description('Id of the Google Cloud project; that of the credentials when unset.'),
    ),
  ),
  location: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[a-z0-9-]+$/, 'expected a region such as europe-west4, or global'),
      v.description('Google Cloud region, such as europe-west4, or global.'),
    ),
    'global',
  ),
})
export type VertexConfig = v.InferOutput<typeof VertexConfig>

/**
 * The same models in a Google Cloud project. The key is the path of a credentials file, its JSON, or an API key of
 * express mode.
 * Source: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference
 */
export const vertexAi: ProviderDriver<typeof VertexConfig> = {
  name: 'vertex-ai',
  title: 'Google Vertex AI',
  envVar: 'GOOGLE_APPLICATION_CREDENTIALS',
  baseUrl: 'https://aiplatform.googleapis.com',
  defaultModel: 'gemini-2.5-flash',
  embedding,
  media,
  sharedKey: true,
  config: VertexConfig,
  configVars: {
    project: ['GOOGLE_CLOUD_PROJECT', 'GOOGLE_VERTEX_PROJECT'],
    location: ['GOOGLE_CLOUD_LOCATION', 'GOOGLE_VERTEX_LOCATION'],
  },
  connect: (link: ProviderLink<VertexConfig>) =>
    lazyClient(
      async () => {
        const [{ createClient }, { projectEndpoint }] = await Promise.all([
          import('./client.ts'),
          import('./vertex.ts'),
        ])
        return createClient(projectEndpoint(link), link, vertexAi.defaultModel)
      },
      { models: true, embed: true, media: ['images'] },
    ),
}

export default defineProviders('provider-gemini', '1.0.0', [gemini, vertexAi])
