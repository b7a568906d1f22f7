import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { exportJWK, generateKeyPair } from 'jose'
import { Provider } from 'oidc-provider'

export interface ProtectedServer extends AsyncDisposable {
  readonly url: string
  readonly issuer: string
  /** Requests to the token endpoint, as what was granted. */
  readonly grants: string[]
  /** How often a request came without a token that counts. */
  refused: number
  /** Every access token is refused from now on; refresh tokens too, if told so. */
  revoke(all?: boolean): Promise<void>
}

async function bind() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { server, origin, close }
}

/**
 * An MCP server of version 1 of the SDK behind the authorization server of the package `oidc-provider`, with dynamic
 * registration and resource indicators. Its people log in by looking at it.
 */
export async function startProtectedServer(options: { readonly tokenSecs?: number } = {}): Promise<ProtectedServer> {
  const [issuer, mcp] = await Promise.all([bind(), bind()])
  const resource = `${mcp.origin}/mcp`
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const provider = new Provider(issuer.origin, {
    clients: [
      {
        client_id: 'robot',
        client_secret: 'the-secret-of-the-robot',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'one', use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['for tests only'] },
    scopes: ['mcp', 'offline_access'],
    clientDefaults: { grant_types: ['authorization_code', 'refresh_token'] },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      clientCredentials: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope: 'mcp', audience: resource, accessTokenTTL: options.tokenSecs ?? 600 }),
      },
    },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  })
  const state = { revoked: 0, refused: 0 }
  const grants: string[] = []
  provider.on('grant.success', (context) => grants.push(String(context.oidc.params?.['grant_type'])))
  const answer = provider.callback()
  issuer.server.on('request', (request, response) => {
    if (request.url?.startsWith('/interaction/')) void agree(request, response)
    else void answer(request, response)
  })
  /** Somebody logs in, and lets the client have what it asks for. */
  const agree = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { prompt, params, session } = await provider.interactionDetails(request, response)
    if (prompt.name === 'login') {
      await provider.interactionFinished(request, response, { login: { accountId: 'ada' } })
      return
    }
    const grant = new provider.Grant({ clientId: String(params['client_id']), accountId: session?.accountId ?? '' })
    grant.addOIDCScope('openid offline_access mcp')
    grant.addResourceScope(resource, 'mcp')
    await provider.interactionFinished(
      request,
      response,
      { consent: { grantId: await grant.save() } },
      { mergeWithLastSubmission: true },
    )
  }
  const isValid = async (header: string | undefined): Promise<boolean> => {
    const token = header?.startsWith('Bearer ') === true ? header.slice(7) : undefined
    const known =
      token === undefined
        ? undefined
        : ((await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token)))
    return known !== undefined && known.aud === resource && (known.iat ?? 0) * 1000 >= state.revoked
  }
  mcp.server.on('request', (request, response) => {
    void (async () => {
      if (request.url?.startsWith('/.well-known/oauth-protected-resource')) {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ resource, authorization_servers: [issuer.origin], scopes_supported: ['mcp'] }))
        return
      }
      if (!(await isValid(request.headers.authorization))) {
        state.refused++
        const metadata = `${mcp.origin}/.well-known/oauth-protected-resource/mcp`
        response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}", scope="mcp"` }).end()
        return
      }
      const server = new McpServer({ name: 'vault', version: '1.0.0' })
      server.registerTool('whoami', { description: 'Says who calls' }, () => ({
        content: [{ type: 'text', text: 'ada' }],
      }))
      const transport = new StreamableHTTPServerTransport()
      response.on('close', () => void transport.close())
      await server.connect(transport as Parameters<typeof server.connect>[0])
      await transport.handleRequest(request, response)
    })()
  })
  return {
    url: resource,
    issuer: issuer.origin,
    grants,
    get refused() {
      return state.refused
    },
    set refused(count) {
      state.refused = count
    },
    async revoke(all = false) {
      state.revoked = Date.now() + 1000
      if (all) state.revoked = Number.MAX_SAFE_INTEGER
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([issuer.close(), mcp.close()])
    },
  }
}

/** What a browser does with the address of a login: follows it with its cookies, up to where it comes back. */
export async function logIn(address: string, until: (url: URL) => boolean): Promise<URL> {
  const jar = new Map<string, string>()
  let url = new URL(address)
  for (let hops = 0; hops < 10; hops++) {
    if (until(url)) return url
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';')
      jar.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1))
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`${url.href} answered ${response.status}: ${await response.text()}`)
    url = new URL(location, url)
  }
  throw new Error(`${address} redirects for ever`)
}
