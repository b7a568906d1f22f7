import type {
  AddClientAuthentication,
  OAuthClientInformationContext,
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { omitUndefined, Refusal } from 'svc/sdk'
import { isLoopback } from '../connection/network.ts'
import { serverFailed } from '../errors.ts'
import type { ServerConfig } from '../servers/spec.ts'
import type { OAuthRecords, PendingLogin } from './record.ts'

/** No browser or server takes a longer address. */
const MAX_PAGE_CHARS = 16_384
/** A token is renewed this long before it ends. */
const RENEW_BEFORE_MS = 30_000

export interface ProviderOptions {
  readonly server: ServerConfig
  readonly records: OAuthRecords
  /** Where the browser comes back to; absent where no person logs in. */
  readonly redirectUrl: string
  /** The document that describes this client, where the daemon has a public address. */
  readonly metadataUrl: string | undefined
  readonly now: () => number
  /**
   * The login that a person begins now. A connection has none: it only notes what it would need, and the server waits
   * for a login.
   */
  readonly login?: { readonly pending: PendingLogin; verifier?: string; url?: URL } | undefined
  /** Renews the tokens of a connection before they end; one renewal at a time. */
  readonly renew?: ((provider: OAuthClientProvider) => Promise<void>) | undefined
}

/** What the OAuth client of the SDK keeps, in the vault. */
export class VaultOAuthProvider implements OAuthClientProvider {
  readonly #options: ProviderOptions
  #renewing: Promise<void> | undefined
  readonly clientMetadataUrl?: string
  readonly addClientAuthentication?: AddClientAuthentication
  constructor(options: ProviderOptions) {
    this.#options = options
    if (options.metadataUrl !== undefined) this.clientMetadataUrl = options.metadataUrl
    const { client_id: id, private_key: key } = options.server.oauth ?? {}
    if (id !== undefined && key !== undefined)
      this.addClientAuthentication = async (...request) => {
        const { signWith } = await import('./private-key.ts')
        const authenticate = await signWith(id, key)
        await authenticate(...request)
      }
  }

  get #isMachine(): boolean {
    return this.#options.server.oauth?.grant === 'client_credentials'
  }
  get redirectUrl(): string | undefined {
    return this.#isMachine ? undefined : this.#options.redirectUrl
  }
  get clientMetadata(): OAuthClientMetadata {
    const { server, redirectUrl } = this.#options
    return clientMetadata(redirectUrl, server.oauth?.scopes, this.#isMachine)
  }
  state(): string {
    return this.#options.login?.pending.state ?? ''
  }

  async clientInformation(context?: OAuthClientInformationContext): Promise<StoredOAuthClientInformation | undefined> {
    const { server, records, redirectUrl } = this.#options
    const { client } = await records.read(server)
    const { client_id: id, client_secret: secret } = server.oauth ?? {}
    if (id !== undefined) {
      // Bound to the authorization server that it was used with first.
      const bound = client?.information.client_id === id ? client.information.issuer : undefined
      if (bound === undefined && context) await this.saveClientInformation({ client_id: id, issuer: context.issuer })
      return omitUndefined({ client_id: id, client_secret: secret, issuer: bound ?? context?.issuer })
    }
    return client?.redirect === redirectUrl ? client.information : undefined
  }
  async saveClientInformation(information: StoredOAuthClientInformation): Promise<void> {
    const { server, records, redirectUrl } = this.#options
    // The secret of a client of the configuration stays there.
    const { client_secret: _secret, ...rest } = information
    const kept = server.oauth?.client_id === undefined ? information : rest
    await records.change(server, () => ({ client: { information: kept, redirect: redirectUrl } }))
  }

  async tokens(context?: OAuthClientInformationContext): Promise<StoredOAuthTokens | undefined> {
    const { server, records, now, renew } = this.#options
    const record = await records.read(server)
    const isEnding = record.expiresAt !== undefined && record.expiresAt - RENEW_BEFORE_MS <= now()
    // With a context it is the renewal itself that asks.
    if (context !== undefined || !renew || !isEnding || !record.tokens) return record.tokens
    if (record.tokens.refresh_token === undefined && !this.#isMachine) return record.tokens
    this.#renewing ??= renew(this).finally(() => {
      this.#renewing = undefined
    })
    await this.#renewing
    return (await records.read(server)).tokens
  }
  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    const { server, records, now } = this.#options
    for (const token of [tokens.access_token, tokens.refresh_token]) checkToken(server.name, token)
    const expiresAt = tokens.expires_in === undefined ? undefined : now() + tokens.expires_in * 1000
    await records.change(server, (record) => ({
      // A server that does not rotate refresh tokens leaves them out.
      tokens: omitUndefined({ ...tokens, refresh_token: tokens.refresh_token ?? record.tokens?.refresh_token }),
      expiresAt,
      scope: undefined,
    }))
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    const { server, records, login } = this.#options
    checkPage(server.name, url)
    if (login) login.url = url
    else await records.change(server, () => ({ scope: url.searchParams.get('scope') ?? undefined }))
  }
  saveCodeVerifier(verifier: string): void {
    if (this.#options.login) this.#options.login.verifier = verifier
  }
  codeVerifier(): string {
    const verifier = this.#options.login?.verifier ?? this.#options.login?.pending.verifier
    if (verifier === undefined) throw new Error('no login was begun')
    return verifier
  }

  async saveDiscoveryState(discovery: OAuthDiscoveryState): Promise<void> {
    await this.#options.records.change(this.#options.server, () => ({ discovery }))
  }
  /** Only the second half of a login relies on what the first half found; else a moved server would never be found. */
  async discoveryState(): Promise<OAuthDiscoveryState | undefined> {
    const { login, records, server } = this.#options
    return login?.pending.verifier === undefined ? undefined : (await records.read(server)).discovery
  }
  async invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): Promise<void> {
    const { server, records } = this.#options
    const all = scope === 'all'
    await records.change(server, ({ client, tokens, expiresAt, discovery }) => ({
      client: all || scope === 'client' ? undefined : client,
      tokens: all || scope === 'tokens' ? undefined : tokens,
      expiresAt: all || scope === 'tokens' ? undefined : expiresAt,
      discovery: all || scope === 'discovery' ? undefined : discovery,
    }))
  }
  prepareTokenRequest(scope?: string): URLSearchParams | undefined {
    if (!this.#isMachine) return undefined
    return new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== undefined && { scope }) })
  }
}

/** Where a person types a password: over https, or on this machine. */
function checkPage(server: string, url: URL): void {
  const isPlain = url.protocol === 'http:' && isLoopback(url.hostname)
  if (url.protocol !== 'https:' && !isPlain)
    throw new Refusal('forbidden', `The server ${server} sends its login to ${url.protocol}, which is no https page`)
  if (url.username !== '' || url.password !== '')
    throw new Refusal('forbidden', `The server ${server} sends its login to an address with a password in it`)
  if (url.href.length > MAX_PAGE_CHARS)
    throw new Refusal('forbidden', `The address of the login of ${server} has more than ${MAX_PAGE_CHARS} characters`)
}
/** It is sent in a header; an error there would show it. */
function checkToken(server: string, token: string | undefined): void {
  if (token !== undefined && !/^[\x21-\x7e]{1,65536}$/.test(token))
    throw new Refusal(serverFailed, `The authorization server of ${server} answers a token that cannot be sent`)
}

/** What an authorization server is told of this client when it registers, and what its document says. */
export function clientMetadata(
  redirectUrl: string,
  scopes: readonly string[] | undefined,
  isMachine = false,
): OAuthClientMetadata {
  return {
    client_name: 'svc',
    redirect_uris: isMachine ? [] : [redirectUrl],
    grant_types: isMachine ? ['client_credentials'] : ['authorization_code', 'refresh_token'],
    response_types: isMachine ? [] : ['code'],
    ...(scopes && scopes.length > 0 && { scope: scopes.join(' ') }),
  }
}
