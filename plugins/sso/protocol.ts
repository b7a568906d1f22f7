import * as oauth from 'oauth4webapi'
import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import { isProtected } from './config.ts'
import type { Identity, Provider } from './config.ts'

/**
 * Accepted signature algorithms, all with a private key. Neither `none` nor those with a shared secret, for which a
 * public key could be misused.
 */
const ALGORITHMS = new Set([
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
])
/** Documents of a provider are a few kilobytes. */
const MAX_BYTES = 262_144
const METADATA_MS = 300_000

/** The state between the redirect to the provider and the return. */
export interface Secrets {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

const line = v.pipe(v.string(), v.maxLength(1024))
const Claims = v.object({
  email: v.optional(v.fallback(v.optional(line), undefined)),
  // Apple sends the word.
  email_verified: v.optional(
    v.fallback(
      v.pipe(
        v.union([v.boolean(), v.picklist(['true', 'false'])]),
        v.transform((value) => value === true || value === 'true'),
      ),
      false,
    ),
    false,
  ),
  name: v.optional(v.fallback(v.optional(line), undefined)),
  picture: v.optional(v.fallback(v.optional(v.pipe(line, v.url(), v.startsWith('https://'))), undefined)),
})

/**
 * OpenID Connect with one provider: authorization code, PKCE, state, nonce. The library checks; all requests go through
 * the daemon's `fetch`.
 */
export class Protocol {
  readonly #provider: Provider
  readonly #fetch: Fetch
  readonly #timeoutMs: number
  readonly #now: () => number
  #metadata: { readonly found: Promise<oauth.AuthorizationServer>; readonly until: number } | undefined

  constructor(
    provider: Provider,
    parts: { readonly fetch: Fetch; readonly timeoutMs: number; readonly now: () => number },
  ) {
    this.#provider = provider
    this.#fetch = parts.fetch
    this.#timeoutMs = parts.timeoutMs
    this.#now = parts.now
  }

  /** Where to send the browser. */
  async begin(): Promise<{ readonly url: string; readonly secrets: Secrets }> {
    const provider = this.#provider
    const server = await this.#server()
    const secrets: Secrets = {
      state: oauth.generateRandomState(),
      nonce: oauth.generateRandomNonce(),
      verifier: oauth.generateRandomCodeVerifier(),
    }
    const url = new URL(server.authorization_endpoint ?? '')
    if (!isProtected(url.href) || (url.protocol === 'http:' && !this.#isLocal))
      throw new Error('its authorization_endpoint is not https')
    const parameters = {
      response_type: 'code',
      client_id: provider.clientId,
      redirect_uri: provider.redirectUrl,
      scope: provider.scopes.join(' '),
      state: secrets.state,
      nonce: secrets.nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(secrets.verifier),
      code_challenge_method: 'S256',
      ...(provider.formPost ? { response_mode: 'form_post' } : {}),
    }
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    return { url: url.href, secrets }
  }

  /** The person who came back. Throws what the library rejected, or why a request to the provider failed. */
  async complete(answer: URLSearchParams, secrets: Secrets): Promise<Identity> {
    const provider = this.#provider
    // A copy: the library keeps the keys of a provider with this object, and new ones must count at once.
    const server = { ...(await this.#server()) }
    const client: oauth.Client = { client_id: provider.clientId }
    const options = { [oauth.customFetch]: this.#request, [oauth.allowInsecureRequests]: this.#isLocal }
    const parameters = oauth.validateAuthResponse(server, client, answer, secrets.state)
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      authentication(server, provider),
      parameters,
      provider.redirectUrl,
      secrets.verifier,
      options,
    )
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
      expectedNonce: secrets.nonce,
      requireIdToken: true,
    })
    await oauth.validateApplicationLevelSignature(server, response, options)
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    if (!claims) throw new Error('it sent no ID token')
    const signed = v.parse(Claims, claims)
    const fromUserInfo =
      server.userinfo_endpoint === undefined
        ? signed
        : v.parse(
            Claims,
            await oauth.processUserInfoResponse(
              server,
              client,
              claims.sub,
              await oauth.userInfoRequest(server, client, tokens.access_token, options),
            ),
          )
    // An address and whether it was verified are one statement: both come from the same place.
    const { email, email_verified } = signed.email === undefined ? fromUserInfo : signed
    return {
      provider: provider.id,
      issuer: provider.issuer,
      sub: claims.sub,
      email,
      email_verified,
      name: signed.name ?? fromUserInfo.name,
      picture: signed.picture ?? fromUserInfo.picture,
    }
  }

  get #isLocal(): boolean {
    return this.#provider.issuer.startsWith('http:')
  }

  /**
   * The provider's discovery document, or the configuration instead of it. Concurrent callers share one request; it is
   * repeated after some minutes.
   */
  #server(): Promise<oauth.AuthorizationServer> {
    if (this.#metadata !== undefined && this.#metadata.until > this.#now()) return this.#metadata.found
    const found = this.#discover()
    const metadata = { found, until: this.#now() + METADATA_MS }
    this.#metadata = metadata
    found.catch(() => {
      if (this.#metadata === metadata) this.#metadata = undefined
    })
    return found
  }

  async #discover(): Promise<oauth.AuthorizationServer> {
    const { issuer, endpoints } = this.#provider
    if (endpoints) {
      const { auth, token, jwks, userinfo } = endpoints
      return {
        issuer,
        authorization_endpoint: auth,
        token_endpoint: token,
        jwks_uri: jwks,
        ...omitUndefined({ userinfo_endpoint: userinfo }),
      }
    }
    const url = new URL(issuer)
    const response = await oauth.discoveryRequest(url, {
      [oauth.customFetch]: this.#request,
      [oauth.allowInsecureRequests]: this.#isLocal,
    })
    const server = await oauth.processDiscoveryResponse(url, response)
    const offered = server.id_token_signing_alg_values_supported ?? ['RS256']
    return { ...server, id_token_signing_alg_values_supported: offered.filter((name) => ALGORITHMS.has(name)) }
  }

  readonly #request = async (
    address: string,
    init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: unknown },
  ): Promise<Response> => {
    const { method, headers, body } = init
    const answer = await this.#fetch(address, {
      maxBytes: MAX_BYTES,
      totalTimeoutMs: this.#timeoutMs,
      headersTimeoutMs: this.#timeoutMs,
      // The endpoints come from the discovery document or the configuration: redirects are not followed.
      check: (url) => {
        if (url.href !== new URL(address).href)
          throw new Error(`${new URL(address).origin} redirected, which a provider may not`)
      },
      ...omitUndefined({ method, headers }),
      ...(body instanceof URLSearchParams ? { body: body.toString() } : {}),
    })
    return answer.toResponse()
  }
}

function authentication(server: oauth.AuthorizationServer, { clientSecret }: Provider): oauth.ClientAuth {
  if (clientSecret === undefined) return oauth.None()
  const methods = server.token_endpoint_auth_methods_supported
  return methods !== undefined && !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
    ? oauth.ClientSecretPost(clientSecret)
    : oauth.ClientSecretBasic(clientSecret)
}
