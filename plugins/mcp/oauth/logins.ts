import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { OAuthClientProvider } from '@modelcontextprotocol/client'
import { Refusal } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import { describeFailure } from '../connection/describe-failure.ts'
import { serverFailed } from '../errors.ts'
import type { ServerConfig } from '../servers/spec.ts'
import { loginAdvice } from './advice.ts'
import { CALLBACK_PATH, METADATA_PATH } from './paths.ts'
import { VaultOAuthProvider } from './provider.ts'
import type { OAuthRecords } from './record.ts'

/** How long a person may take to log in. */
const LOGIN_MS = 600_000

export type PlatformFetch = (input: string | URL, init?: RequestInit) => Promise<Response>
export interface LoginDeps {
  readonly records: OAuthRecords
  readonly find: (name: string) => ServerConfig | undefined | Promise<ServerConfig | undefined>
  /** The network for this server, as the fetch of the platform. */
  readonly fetchOf: (server: ServerConfig) => PlatformFetch
  /** Without a path: where a browser reaches this daemon. */
  readonly origin: () => string
  /** Whether `origin` is an https address that other machines reach too. */
  readonly isPublic: () => boolean
  /** The document that describes this client, where it is not ours. */
  readonly metadataUrl?: string | undefined
  readonly now: () => number
  readonly log: Pick<Logger, 'warn'>
  /** The server has new tokens, or none. */
  readonly changed: (name: string) => Promise<void>
}
export interface Callback {
  readonly state?: string | undefined
  readonly code?: string | undefined
  readonly iss?: string | undefined
  readonly error?: string | undefined
  readonly error_description?: string | undefined
}

/** Logs in at MCP servers with OAuth 2.1, as their specification says. */
export class OAuthLogins {
  readonly #deps: LoginDeps
  constructor(deps: LoginDeps) {
    this.#deps = deps
  }

  get redirectUrl(): string {
    return `${this.#deps.origin()}${CALLBACK_PATH}`
  }
  /** What the transport of an HTTP server authenticates with. */
  provider(server: ServerConfig, fetch: PlatformFetch): OAuthClientProvider {
    const { log } = this.#deps
    return new VaultOAuthProvider({
      ...this.#options(server),
      async renew(provider) {
        const { auth } = await import('@modelcontextprotocol/client')
        // When it fails the old token is sent, and the server says what it wants.
        const failure = await auth(provider, { serverUrl: server.url ?? '', fetchFn: fetch }).then(
          (result) => (result === 'AUTHORIZED' ? undefined : loginAdvice(server.name)),
          describeFailure,
        )
        if (failure !== undefined)
          log.warn(`the login at the MCP server "${server.name}" could not be renewed: ${failure}`)
      },
    })
  }
  /** Begins a login and returns the address to open; `undefined` when none is needed, as for a client of its own. */
  async begin(name: string): Promise<{ readonly url: string; readonly expiresAt: number } | undefined> {
    const server = await this.#require(name)
    const { records, now } = this.#deps
    const pending = { state: randomBytes(32).toString('base64url'), expiresAt: now() + LOGIN_MS }
    const login: { pending: typeof pending; verifier?: string; url?: URL } = { pending }
    const { scope, discovery } = await records.read(server)
    const provider = new VaultOAuthProvider({ ...this.#options(server), login })
    const result = await this.#auth(server, provider, { scope, metadata: discovery?.resourceMetadataUrl })
    if (result === 'AUTHORIZED') {
      await this.#deps.changed(name)
      return undefined
    }
    const { url, verifier } = login
    if (!url) throw failed(name, 'it names no page to log in at')
    await records.change(server, () => ({ pending: { ...pending, verifier } }))
    return { url: url.href, expiresAt: pending.expiresAt }
  }
  /** The browser came back. Returns the name of the server; throws a `Refusal` with what the person can do. */
  async finish({ state = '', code, iss, error, error_description: details }: Callback): Promise<string> {
    const { records, now } = this.#deps
    const taken = await records.takePending((pending) => isSame(pending.state, state))
    if (!taken || taken.pending.expiresAt < now())
      throw new Refusal('forbidden', 'This login is not known or took too long: begin it again')
    const server = await this.#require(taken.server)
    if (error !== undefined || code === undefined) {
      const why = describeFailure(`${error ?? 'no code'}${details === undefined ? '' : `: ${details}`}`).slice(0, 300)
      throw new Refusal('forbidden', `The login at ${server.name} was refused: ${why}`)
    }
    const provider = new VaultOAuthProvider({ ...this.#options(server), login: { pending: taken.pending } })
    await this.#auth(server, provider, { authorizationCode: code, iss })
    await this.#deps.changed(server.name)
    return server.name
  }
  /** Forgets the tokens and the client that was registered. Returns whether there were any. */
  async logout(name: string): Promise<boolean> {
    const server = await this.#require(name)
    const { tokens } = await this.#deps.records.read(server)
    await this.#deps.records.change(server, () => ({
      tokens: undefined,
      expiresAt: undefined,
      client: undefined,
      discovery: undefined,
      pending: undefined,
      scope: undefined,
    }))
    await this.#deps.changed(name)
    return tokens !== undefined
  }

  #options(server: ServerConfig) {
    const { records, now, origin, isPublic, metadataUrl: other } = this.#deps
    const metadataUrl = other ?? (isPublic() ? `${origin()}${METADATA_PATH}` : undefined)
    return { server, records, now, redirectUrl: this.redirectUrl, metadataUrl }
  }
  async #require(name: string): Promise<ServerConfig> {
    const server = await this.#deps.find(name)
    if (!server) throw new Refusal('not_found', `No MCP server "${name}"`)
    if (server.url === undefined)
      throw new Refusal('invalid_request', `${name} is a program, which has no login: its variables hold credentials`)
    return server
  }
  async #auth(
    server: ServerConfig,
    provider: OAuthClientProvider,
    more: {
      readonly authorizationCode?: string
      readonly iss?: string | undefined
      readonly scope?: string | undefined
      /** Where the server said that its metadata is, when it refused the connection. */
      readonly metadata?: string | undefined
    },
  ): Promise<'AUTHORIZED' | 'REDIRECT'> {
    const { auth } = await import('@modelcontextprotocol/client')
    const { authorizationCode, iss, metadata, scope } = more
    const fetch = this.#deps.fetchOf(server)
    let refused: Refusal | undefined
    const fetchFn: PlatformFetch = async (...request) => {
      try {
        return await fetch(...request)
      } catch (error) {
        if (error instanceof Refusal) refused ??= error
        throw error
      }
    }
    try {
      return await auth(provider, {
        serverUrl: server.url ?? '',
        fetchFn,
        forceReauthorization: true,
        ...(authorizationCode !== undefined && { authorizationCode }),
        ...(iss !== undefined && { iss }),
        ...(scope !== undefined && { scope }),
        ...(metadata !== undefined && { resourceMetadataUrl: new URL(metadata) }),
      })
    } catch (error) {
      if (error instanceof Refusal) throw error
      // The SDK goes on without a document that may not be fetched, and its failure says nothing of the reason.
      if (refused) throw refused
      throw failed(server.name, describeFailure(error).slice(0, 300), error)
    }
  }
}

function failed(server: string, why: string, cause?: unknown): Refusal {
  return new Refusal(serverFailed, `The login at ${server} failed: ${why}`, { cause })
}
function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length > 0 && left.length === right.length && timingSafeEqual(left, right)
}
