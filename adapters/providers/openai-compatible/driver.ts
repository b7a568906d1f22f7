import * as v from 'valibot'
import { lazyClient, MEDIA_KINDS } from 'svc/providers'
import type { DeviceSignIn, ProviderDriver } from 'svc/providers'
import type { Vendor } from './vendors.ts'

const Subdomain = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9-]{0,62}$/i, 'expected the name of the resource, without a domain'),
)
const Address = v.pipe(
  v.string(),
  v.url(),
  v.regex(/^https?:\/\//i, 'expected a URL that begins with http:// or https://'),
)
export const VendorConfig = v.object({
  resource: v.optional(v.pipe(Subdomain, v.description('Azure: name of the resource, the first part of its address.'))),
  api_version: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\w.-]+$/, 'expected a version such as 2024-10-21'),
      v.description('Azure: API version, for addresses by deployment; unset for the API without versions.'),
    ),
  ),
  account_id: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\w-]{1,64}$/, 'expected the id of an account'),
      v.description('Cloudflare: id of the account.'),
    ),
  ),
  github_api_url: v.optional(
    v.pipe(Address, v.description("GitHub Copilot: URL of GitHub's API, for GitHub Enterprise Server.")),
    'https://api.github.com',
  ),
  github_url: v.optional(v.pipe(Address, v.description('GitHub Copilot: URL for sign-in.')), 'https://github.com'),
  // The default is the application of GitHub's own editors, which may use Copilot.
  github_client_id: v.optional(
    v.pipe(v.string(), v.regex(/^[\w.]+$/), v.description('GitHub Copilot: client id of the OAuth application.')),
    'Iv1.b507a08c87ecfe98',
  ),
})
export type VendorConfig = v.InferOutput<typeof VendorConfig>

/** The driver of one vendor. Its code is loaded with the first call. */
export function openAiCompatible(vendor: Vendor): ProviderDriver<typeof VendorConfig> {
  const {
    name,
    title,
    account,
    envVar,
    otherEnvVars,
    addressVar,
    sharedKey,
    baseUrl,
    defaultModel,
    embedding,
    media,
    noModels,
  } = vendor
  return {
    name,
    title,
    defaultModel,
    config: VendorConfig,
    ...(envVar !== undefined && { envVar }),
    ...(otherEnvVars && { otherEnvVars }),
    ...(addressVar !== undefined && { addressVar }),
    ...(sharedKey && { sharedKey }),
    ...(baseUrl !== undefined && { baseUrl }),
    ...(embedding && { embedding }),
    ...(media && { media }),
    ...(vendor.access === 'azure' && {
      configVars: { resource: ['AZURE_RESOURCE_NAME'], api_version: ['OPENAI_API_VERSION'] },
    }),
    ...(vendor.access === 'azure' && {
      address: ({ resource }: VendorConfig) =>
        resource === undefined ? undefined : `https://${resource}.openai.azure.com`,
    }),
    ...(account && {
      configVars: { account_id: [account.variable] },
      address: ({ account_id: id }: VendorConfig) => (id === undefined ? undefined : account.url(id)),
    }),
    ...(vendor.access === 'copilot' && { signIn }),
    connect: (link) =>
      lazyClient(async () => (await import('./client.ts')).createClient(vendor, link), {
        models: !noModels,
        embed: !vendor.noEmbeddings,
        // An operator may name a model of any vendor.
        media: MEDIA_KINDS,
      }),
  }
}

function signIn({ github_url: url, github_client_id: clientId }: VendorConfig): DeviceSignIn {
  const base = url.replace(/\/+$/, '')
  return {
    codeUrl: `${base}/login/device/code`,
    tokenUrl: `${base}/login/oauth/access_token`,
    clientId,
    scope: 'read:user',
  }
}
