import { hash } from 'node:crypto'
import * as v from 'valibot'
import { readFailedBody, shortened, UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'
import { baseUrlOf, failureClass, TokenCache } from 'svc/providers'
import type { ApiHeaders, CompletionRequest, ExpiringToken, ProviderLink } from 'svc/providers'
import type { Access } from './client.ts'
import type { VendorConfig } from './driver.ts'

const DEFAULT_BASE_URL = 'https://api.githubcopilot.com'
const MAX_TOKEN_BYTES = 65_536
/** The service only serves editors it knows, so this names one whose requests it takes. */
const EDITOR_HEADERS = {
  'editor-version': 'vscode/1.99.3',
  'editor-plugin-version': 'copilot-chat/0.26.7',
  'copilot-integration-id': 'vscode-chat',
  'user-agent': 'GitHubCopilotChat/0.26.7',
}

const TokenResponse = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    token: v.pipe(v.string(), v.nonEmpty()),
    expires_at: v.number(),
    endpoints: v.nullish(v.object({ api: v.nullish(v.pipe(v.string(), v.url())) })),
  }),
)
interface CopilotToken extends ExpiringToken {
  readonly token: string
  /** The API that serves the account. */
  readonly api: string | undefined
}

/**
 * GitHub Copilot: a GitHub token is exchanged for a Copilot token of about half an hour, which also names the API that
 * serves the account. GitHub documents neither; both are what its editors do.
 */
export function copilot(link: ProviderLink<VendorConfig>): Access {
  const tokens = new TokenCache((key: string) => exchange(link, key))
  const base = baseUrlOf(link)

  async function tokenOf(signal: AbortSignal): Promise<CopilotToken & { readonly key: string }> {
    signal.throwIfAborted()
    const key = await link.apiKey()
    if (key === undefined)
      throw new UpstreamFailure(link.name, `${link.name} has no GitHub token`, { reason: 'auth', retry: 'never' })
    return { ...(await tokens.get(key, signal)), key }
  }

  return {
    async url(path, _, signal) {
      const { api } = await tokenOf(signal)
      // An address that the operator configured goes before that of the account.
      const isOwnApi = base === DEFAULT_BASE_URL && isCopilotApi(api)
      return `${isOwnApi ? api.replace(/\/$/, '') : base}${path}`
    },
    async headers(signal, completion) {
      const { token, key } = await tokenOf(signal)
      return {
        ...EDITOR_HEADERS,
        authorization: `Bearer ${token}`,
        'openai-intent': 'conversation-panel',
        'x-github-api-version': '2025-04-01',
        ...(completion && completionHeaders(completion, key)),
      }
    },
    clear: () => tokens.clear(),
  }
}

const isCopilotApi = (api: string | undefined): api is string =>
  api !== undefined && /^https:\/\/[a-z0-9.-]+\.githubcopilot\.com\/?$/.test(api)

function completionHeaders({ turns }: CompletionRequest, key: string): ApiHeaders {
  const hasImage = turns.some((turn) => turn.role === 'user' && turn.parts.some(({ type }) => type === 'image'))
  return {
    // GitHub does not count a request that answers tools as one of a person.
    'x-initiator': turns.at(-1)?.role === 'tool' ? 'agent' : 'user',
    'vscode-machineid': hash('sha256', key),
    ...(hasImage && { 'copilot-vision-request': 'true' }),
  }
}

async function exchange({ name, config, fetch }: ProviderLink<VendorConfig>, key: string): Promise<CopilotToken> {
  const response = await fetch(`${config.github_api_url.replace(/\/+$/, '')}/copilot_internal/v2/token`, {
    headers: { ...EDITOR_HEADERS, accept: 'application/json', authorization: `token ${key}` },
    totalTimeoutMs: 20_000,
    maxBytes: MAX_TOKEN_BYTES,
  })
  if (!response.ok) throw exchangeFailure(name, response.status, await readFailedBody(response))
  const read = v.safeParse(TokenResponse, await response.text())
  if (!read.success)
    throw new UpstreamFailure(name, `${name} got no Copilot token from GitHub`, { reason: 'malformed', retry: 'later' })
  const { token, expires_at: expires, endpoints } = read.output
  return { token, expiresAt: expires * 1000, api: endpoints?.api ?? undefined }
}

function exchangeFailure(name: string, status: number, body: string): UpstreamFailure {
  let why = shortened(body)
  if (status === 401) why = 'GitHub does not know the token: sign in again'
  else if (status === 403 || status === 404) why = 'the GitHub account of the token has no access to Copilot'
  let reason: UpstreamReason = 'auth'
  if (status === 429) reason = 'rate_limit'
  else if (status >= 500) reason = 'server_error'
  return new UpstreamFailure(name, `${name} was refused a Copilot token (${status}): ${why}`, failureClass(reason))
}
