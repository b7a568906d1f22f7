import type { ProviderLink } from 'svc/providers'
import { accessTokens, readCredentials } from './credentials.ts'
import type { Credentials } from './credentials.ts'
import { pathOf } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import type { VertexConfig } from './index.ts'

const GLOBAL = 'https://aiplatform.googleapis.com'
const VERSION = 'v1beta1'

/**
 * A project of Google Cloud, opened with a service account, or with a key of express mode, which belongs to no
 * project.
 */
export function projectEndpoint(link: ProviderLink<VertexConfig>): Endpoint {
  const { location } = link.config
  const tokens = accessTokens(link.name, link.fetch)
  const base = link.baseUrl.replace(/\/+$/, '')
  const root =
    base !== GLOBAL || location === 'global'
      ? base
      : // The two unions of regions have names of their own. Source: the vendor's client.
        location === 'us' || location === 'eu'
        ? `https://aiplatform.${location}.rep.googleapis.com`
        : `https://${location}-aiplatform.googleapis.com`
  const address = /\/v\d+(?:alpha|beta)?\d*$/.test(root) ? root : `${root}/${VERSION}`

  let last: { readonly key: string; readonly credentials: Credentials | undefined } | undefined
  /** Read once for each key: the file is small, but a request must not wait for a disk. */
  async function credentials(): Promise<{ key: string | undefined; account: Credentials | undefined }> {
    const key = await link.apiKey()
    if (key === undefined) return { key, account: undefined }
    if (last?.key !== key) last = { key, credentials: await readCredentials(link.name, key) }
    return { key, account: last.credentials }
  }

  async function folder(): Promise<string> {
    const { account } = await credentials()
    const project = link.config.project ?? account?.projectId
    return project === undefined ? '' : `/projects/${project}/locations/${location}`
  }

  return {
    embedding: 'predict',
    lists: false,
    method: async (model, method) => `${address}${await folder()}/publishers/google/models/${pathOf(model)}:${method}`,
    models: async () => `${address}/publishers/google/models`,
    async headers(signal) {
      const { key, account } = await credentials()
      if (account)
        return {
          authorization: `Bearer ${await tokens(account, signal)}`,
          ...(account.quotaProject !== undefined && { 'x-goog-user-project': account.quotaProject }),
        }
      return key === undefined ? {} : { 'x-goog-api-key': key }
    },
    // The file may hold another account by now; its tokens go with it.
    forget() {
      last = undefined
    },
  }
}
