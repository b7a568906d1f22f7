import { hash } from 'node:crypto'
import * as v from 'valibot'
import { readFailedBody, shortened, UpstreamFailure } from 'svc/sdk'
import type { ProviderLink } from 'svc/providers'
import type { Access } from './access.ts'
import type { VendorConfig } from './driver.ts'

const HOME = 'https://api.githubcopilot.com'
/** A token is asked for anew so long before it ends, so that none ends on its way. */
const EARLY_MS = 60_000
const MAX_TOKEN_BYTES = 65_536
/** What the service asks of an editor. It does not know others, so this names one whose requests it takes. */
const EDITOR = {
  'editor-version': 'vscode/1.99.3',
  'editor-plugin-version': 'copilot-chat/0.26.7',
  'copilot-integration-id': 'vscode-chat',
  'user-agent': 'GitHubCopilotChat/0.26.7',
}

const Token = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    token: v.pipe(v.string(), v.nonEmpty()),
    expires_at: v.number(),
    endpoints: v.nullish(v.object({ api: v.nullish(v.pipe(v.string(), v.url())) })),
  }),
)
interface Grant {
  readonly key: string
  readonly token: string
  readonly until: number
  readonly api: string | undefined
}

/**
 * GitHub Copilot: a GitHub token is exchanged for one of about half an hour, which also says where the account's
 * requests go.
 * GitHub documents neither; both are what its editors do.
 */
export function copilot(link: ProviderLink<VendorConfig>): Access {
  let grant: Grant | undefined
  let asking: { readonly key: string; readonly grant: Promise<Grant> } | undefined

  async function exchange(key: string): Promise<Grant> {
    const response = await link.fetch(`${link.config.github_api_url.replace(/\/+$/, '')}/copilot_internal/v2/token`, {
      headers: { ...EDITOR, accept: 'application/json', authorization: `token ${key}` },
      totalTimeoutMs: 20_000,
      maxBytes: MAX_TOKEN_BYTES,
    })
    if (!response.ok) throw refused(response.status, await readFailedBody(response))
    const read = v.safeParse(Token, await response.text())
    if (!read.success)
      throw new UpstreamFailure(link.name, `${link.name} got no Copilot token from GitHub`, {
        reason: 'malformed',
        retry: 'later',
      })
    const { token, expires_at: expires, endpoints } = read.output
    return { key, token, until: expires * 1000 - EARLY_MS, api: endpoints?.api ?? undefined }
  }

  function refused(status: number, text: string): UpstreamFailure {
    const later = status === 429 || status >= 500
    const why =
      status === 401
        ? 'GitHub does not know the token: sign in again'
        : status === 403 || status === 404
          ? 'the GitHub account of the token has no access to Copilot'
          : shortened(text)
    return new UpstreamFailure(link.name, `${link.name} was refused a Copilot token (${status}): ${why}`, {
      reason: status === 429 ? 'rate_limit' : later ? 'server_error' : 'auth',
      retry: later ? 'later' : 'never',
    })
  }

  /** Calls at the same time share one exchange; a failed one is not kept. */
  async function granted(signal: AbortSignal): Promise<Grant> {
    signal.throwIfAborted()
    const key = await link.apiKey()
    if (key === undefined)
      throw new UpstreamFailure(link.name, `${link.name} has no GitHub token`, { reason: 'auth', retry: 'never' })
    if (grant?.key === key && Date.now() < grant.until) return grant
    if (asking?.key !== key) {
      asking = {
        key,
        grant: exchange(key)
          .then((given) => (grant = given))
          .finally(() => {
            asking = undefined
          }),
      }
    }
    const { grant: running } = asking
    // One caller's abort must not end what others wait for.
    const left = Promise.withResolvers<never>()
    const leave = (): void => left.reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    try {
      return await Promise.race([running, left.promise])
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  const base = link.baseUrl.replace(/\/+$/, '')
  return {
    async url(path, _, signal) {
      // Where the account belongs, as long as nobody sends it elsewhere and it is GitHub's.
      const { api } = await granted(signal)
      return `${base === HOME && api !== undefined && /^https:\/\/[a-z0-9.-]+\.githubcopilot\.com\/?$/.test(api) ? api.replace(/\/$/, '') : base}${path}`
    },
    async headers(signal, request) {
      const { token, key } = await granted(signal)
      const last = request?.turns.at(-1)
      return {
        ...EDITOR,
        authorization: `Bearer ${token}`,
        'openai-intent': 'conversation-panel',
        'x-github-api-version': '2025-04-01',
        // A request that answers tools is not counted as one of a person.
        ...(request && {
          'x-initiator': last?.role === 'tool' ? 'agent' : 'user',
          'vscode-machineid': hash('sha256', key),
        }),
        ...(request?.turns.some((turn) => turn.role === 'user' && turn.parts.some(({ type }) => type === 'image')) && {
          'copilot-vision-request': 'true',
        }),
      }
    },
    forget() {
      grant = undefined
    },
  }
}
