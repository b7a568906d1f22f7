import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { JWK } from 'jose'
import { Provider } from 'oidc-provider'

/** A port nobody listens on now: the address a provider sends people back to is fixed before the daemon starts. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function listen(
  host: string,
): Promise<{ readonly origin: string; handle(listener: RequestListener): void; close(): Promise<void> }> {
  let handler: RequestListener = (_request, response) => {
    response.writeHead(503).end()
  }
  const server = createServer((request, response) => handler(request, response))
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    origin: `http://${host}:${(server.address() as AddressInfo).port}`,
    handle(listener) {
      handler = listener
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export interface Account {
  sub: string
  email?: string
  email_verified?: boolean
  name?: string
}
export interface OpenId extends AsyncDisposable {
  readonly issuer: string
  /** Who is at the browser; signs in without being asked. */
  account: Account
}
/**
 * The provider of the package `oidc-provider`, certified by the OpenID Foundation, with one client. Its people sign
 * in by looking at it.
 */
export async function startOpenId(redirectUrl: string, options: { readonly host?: string } = {}): Promise<OpenId> {
  const server = await listen(options.host ?? '127.0.0.1')
  const openId = {
    issuer: server.origin,
    account: { sub: 'ada', email: 'ada@example.org', email_verified: true, name: 'Ada Lovelace' } as Account,
    [Symbol.asyncDispose]: () => server.close(),
  }
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const provider = new Provider(server.origin, {
    clients: [
      {
        client_id: 'svc',
        client_secret: 'the-secret-of-svc',
        redirect_uris: [redirectUrl],
        response_types: ['code'],
        grant_types: ['authorization_code'],
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'one', use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['for tests only'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ ...openId.account, sub: id }) }),
    async loadExistingGrant(context) {
      const grant = new context.oidc.provider.Grant({
        clientId: context.oidc.client?.clientId ?? '',
        accountId: context.oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
  })
  const answer = provider.callback()
  server.handle((request, response) => {
    if (request.url?.startsWith('/interaction/'))
      void provider.interactionFinished(request, response, { login: { accountId: openId.account.sub } })
    else void answer(request, response)
  })
  return openId
}

export interface Token {
  header: Record<string, unknown>
  claims: Record<string, unknown>
}
/** A provider that can be told to misbehave in one way; otherwise it does what it should. */
export interface Forger extends AsyncDisposable {
  readonly issuer: string
  readonly origin: string
  /** Requests by path, counted. */
  readonly asked: string[]
  /** Bodies of token requests. */
  readonly exchanged: URLSearchParams[]
  readonly publicKey: JWK
  /** Changes the discovery document. */
  metadata: (document: Record<string, unknown>) => Record<string, unknown>
  /** Parameters it sends people back with. */
  back: (parameters: Record<string, string>) => Record<string, string>
  /** Changes the ID token before it is signed. */
  claims: (claims: Record<string, unknown>) => Record<string, unknown>
  /** Instead of the signed token. */
  sign: ((claims: Record<string, unknown>) => Promise<string>) | undefined
  jwks: () => unknown
  userinfo: () => Record<string, unknown>
  /** A new key pair from now on, under another name. */
  rotate(): Promise<void>
}
export async function startForger(): Promise<Forger> {
  const server = await listen('127.0.0.1')
  const issuer = server.origin
  let pair = await generateKeyPair('RS256', { extractable: true })
  let kid = 'first'
  let publicKey = await exportJWK(pair.publicKey)
  const nonces = new Map<string, string>()
  const used = new Set<string>()
  const forger: Forger = {
    issuer,
    origin: server.origin,
    asked: [],
    exchanged: [],
    get publicKey() {
      return publicKey
    },
    metadata: (document) => document,
    back: (parameters) => parameters,
    claims: (claims) => claims,
    sign: undefined,
    jwks: () => ({ keys: [{ ...publicKey, kid, alg: 'RS256', use: 'sig' }] }),
    userinfo: () => ({ sub: 'eve', name: 'Eve' }),
    async rotate() {
      pair = await generateKeyPair('RS256', { extractable: true })
      kid = `${kid}x`
      publicKey = await exportJWK(pair.publicKey)
    },
    [Symbol.asyncDispose]: () => server.close(),
  }
  const json = (response: ServerResponse, value: unknown, status = 200): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  }
  const routes: Record<string, (url: URL, request: IncomingMessage, response: ServerResponse) => void | Promise<void>> =
    {
      '/.well-known/openid-configuration': (_url, _request, response) =>
        json(
          response,
          forger.metadata({
            issuer,
            authorization_endpoint: `${issuer}/authorize`,
            token_endpoint: `${issuer}/token`,
            jwks_uri: `${issuer}/jwks`,
            userinfo_endpoint: `${issuer}/userinfo`,
            response_types_supported: ['code'],
            subject_types_supported: ['public'],
            id_token_signing_alg_values_supported: ['RS256'],
            authorization_response_iss_parameter_supported: true,
          }),
        ),
      '/authorize': (url, _request, response) => {
        const code = `code-${nonces.size}`
        nonces.set(code, url.searchParams.get('nonce') ?? '')
        const back = new URL(url.searchParams.get('redirect_uri') ?? '')
        for (const [name, value] of Object.entries(
          forger.back({ code, state: url.searchParams.get('state') ?? '', iss: issuer }),
        ))
          back.searchParams.set(name, value)
        response.writeHead(302, { location: back.href }).end()
      },
      '/token': async (_url, request, response) => {
        let text = ''
        for await (const chunk of request) text += String(chunk)
        const form = new URLSearchParams(text)
        forger.exchanged.push(form)
        const code = form.get('code') ?? ''
        if (used.has(code) || !nonces.has(code)) {
          json(response, { error: 'invalid_grant' }, 400)
          return
        }
        used.add(code)
        const now = Math.floor(Date.now() / 1000)
        const claims = forger.claims({
          iss: issuer,
          aud: 'svc',
          sub: 'eve',
          nonce: nonces.get(code),
          iat: now,
          exp: now + 300,
          email: 'eve@example.org',
          email_verified: true,
        })
        const token = forger.sign
          ? await forger.sign(claims)
          : await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid }).sign(pair.privateKey)
        json(response, { access_token: 'access', token_type: 'Bearer', expires_in: 60, id_token: token })
      },
      '/jwks': (_url, _request, response) => json(response, forger.jwks()),
      '/moved': (_url, _request, response) => {
        response.writeHead(302, { location: `${issuer}/jwks` }).end()
      },
      '/userinfo': (_url, _request, response) => json(response, forger.userinfo()),
    }
  server.handle((request, response) => {
    const url = new URL(request.url ?? '/', issuer)
    forger.asked.push(url.pathname)
    const route = routes[url.pathname]
    if (route) void route(url, request, response)
    else response.writeHead(404).end()
  })
  return forger
}

/** A browser as far as a sign-in needs one: it follows redirects and keeps the cookies of each host. */
export class Visitor {
  readonly #jar = new Map<string, Map<string, string>>()
  /** The addresses it was at, the last one first. */
  readonly trail: string[] = []

  /** Follows redirects until there is none, or one leads to an address that `until` knows: that answer is returned. */
  async go(
    address: string,
    options: {
      readonly init?: RequestInit
      readonly until?: (url: URL) => boolean
      readonly withoutCookies?: boolean
    } = {},
  ): Promise<Response> {
    let url = new URL(address)
    let init = options.init ?? {}
    for (let hops = 0; hops < 15; hops++) {
      this.trail.unshift(url.href)
      const cookies = [...this.cookies(url)].map(([name, value]) => `${name}=${value}`).join('; ')
      const response = await fetch(url, {
        ...init,
        redirect: 'manual',
        headers: {
          ...(init.headers as Record<string, string> | undefined),
          ...(cookies === '' || (hops === 0 && options.withoutCookies) ? {} : { cookie: cookies }),
        },
      })
      for (const one of response.headers.getSetCookie()) this.#keep(url, one)
      const location = response.headers.get('location')
      if (location === null) return response
      const next = new URL(location, url)
      if (options.until?.(next) === true) return response
      await response.body?.cancel()
      url = next
      init = {}
    }
    throw new Error(`redirected without end: ${this.trail.join(' ')}`)
  }
  cookies(url: URL): Map<string, string> {
    const jar = this.#jar.get(url.host) ?? new Map<string, string>()
    this.#jar.set(url.host, jar)
    return jar
  }
  #keep(url: URL, header: string): void {
    const [pair = '', ...attributes] = header.split('; ')
    const at = pair.indexOf('=')
    if (attributes.includes('Max-Age=0')) this.cookies(url).delete(pair.slice(0, at))
    else this.cookies(url).set(pair.slice(0, at), pair.slice(at + 1))
  }
}
