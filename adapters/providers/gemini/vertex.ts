import { baseUrlOf, TokenCache } from 'svc/providers'
import type { ProviderLink } from 'svc/providers'
import { exchangeToken } from './access-token.ts'
import { readCredentials } from './credentials.ts'
import type { Credentials } from './credentials.ts'
import { modelPath, versionedUrl } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import type { VertexConfig } from './index.ts'

const GLOBAL_URL = 'https://aiplatform.googleapis.com'
const VERSION = 'v1beta1'

/** A Google Cloud project with a service account, or an API key of express mode, which belongs to no project. */
export function projectEndpoint(link: ProviderLink<VertexConfig>): Endpoint {
  const { location, project } = link.config
  const address = versionedUrl(regionalUrl(baseUrlOf(link), location), VERSION)
  const tokens = new TokenCache((credentials: Credentials) => exchangeToken(link.name, link.fetch, credentials))

  let cached: { readonly key: string; readonly credentials: Credentials | undefined } | undefined
  /** Read once for each key: the file is small, but requests should not wait for the disk. */
  async function readKey(): Promise<{ key: string | undefined; credentials: Credentials | undefined }> {
    const key = await link.apiKey()
    if (key === undefined) return { key, credentials: undefined }
    if (cached?.key !== key) cached = { key, credentials: await readCredentials(link.name, key) }
    return cached
  }

  return {
    embedding: 'predict',
    modelsProveKey: false,
    async methodUrl(model, method) {
      const { credentials } = await readKey()
      const projectId = project ?? credentials?.projectId
      const folder = projectId === undefined ? '' : `/projects/${projectId}/locations/${location}`
      return `${address}${folder}/publishers/google/models/${modelPath(model)}:${method}`
    },
    modelsUrl: async () => `${address}/publishers/google/models`,
    async headers(signal) {
      const { key, credentials } = await readKey()
      if (!credentials) return key === undefined ? {} : { 'x-goog-api-key': key }
      const { token } = await tokens.get(credentials, signal)
      return {
        authorization: `Bearer ${token}`,
        ...(credentials.quotaProject !== undefined && { 'x-goog-user-project': credentials.quotaProject }),
      }
    },
    // The file may hold another account by now. Tokens are cached for the credentials read from it.
    clear() {
      cached = undefined
    },
  }
}

/** The address of a region, unless the operator configured another address. Source: the vendor's client. */
function regionalUrl(base: string, location: string): string {
  if (base !== GLOBAL_URL || location === 'global') return base
  // The two multi-regions have names of their own.
  if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com`
  return `https://${location}-aiplatform.googleapis.com`
}
