import { onTestFinished } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { HostOptions, TestHost } from '../../support/host.ts'
import { freePort, startForger, startOpenId, Visitor } from '../../support/openid.ts'
import type { Forger, OpenId } from '../../support/openid.ts'
import type { Json } from '../../support/json.ts'

export const key = 'the-operators-key'
export const operator = { authorization: `Bearer ${key}` }
export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

export interface SignedIn {
  readonly token: string
  readonly token_type: string
  readonly expires_in: number
  readonly provider: string
  readonly user: { readonly sub: string; readonly email: string | null; readonly name: string | null }
}

/** A daemon with a key, where people sign in with the provider of this issuer. */
export async function startSignIn(
  issuer: string,
  port: number,
  section: Record<string, unknown> = {},
  config: Record<string, unknown> = {},
  options: HostOptions = {},
): Promise<TestHost> {
  return startHost({
    memory: true,
    plugins: ['audit', 'pairing', 'settings', 'sso'],
    ...options,
    config: {
      api_key: key,
      listen_addr: `127.0.0.1:${port}`,
      outbound: { allow: ['127.0.0.1', '::1', 'localhost'] },
      ...config,
      external_auth: {
        enabled: true,
        issuer_url: issuer,
        client_id: 'svc',
        client_secret: 'the-secret-of-svc',
        redirect_url: `http://127.0.0.1:${port}/api/auth/callback`,
        allowed_domains: ['example.org'],
        ...section,
      },
    },
  })
}

/** With the real provider. */
export async function withOpenId(
  section: Record<string, unknown> = {},
  config: Record<string, unknown> = {},
  options: HostOptions = {},
): Promise<{ host: TestHost; openId: OpenId }> {
  const port = await freePort()
  const openId = await startOpenId(`http://127.0.0.1:${port}/api/auth/callback`)
  const host = await startSignIn(openId.issuer, port, section, config, options)
  onTestFinished(async () => {
    await host[Symbol.asyncDispose]()
    await openId[Symbol.asyncDispose]()
  })
  return { host, openId }
}
/** With one that can be told to misbehave. */
export async function withForger(
  section: Record<string, unknown> = {},
  config: Record<string, unknown> = {},
  options: HostOptions = {},
): Promise<{ host: TestHost; forger: Forger }> {
  const [port, forger] = await Promise.all([freePort(), startForger()])
  const host = await startSignIn(forger.issuer, port, { scopes: ['openid', 'email'], ...section }, config, options)
  onTestFinished(async () => {
    await host[Symbol.asyncDispose]()
    await forger[Symbol.asyncDispose]()
  })
  return { host, forger }
}

/** The whole way, as a browser goes it: the status and body at its end. */
export async function signIn(
  host: TestHost,
  visitor = new Visitor(),
  path = '/api/auth/login',
): Promise<{ status: number; body: Json }> {
  const response = await visitor.go(host.url + path)
  const text = await response.text()
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
}
/** The token of somebody who signed in. */
export async function tokenOf(host: TestHost): Promise<string> {
  const { status, body } = await signIn(host)
  if (status !== 200) throw new Error(`signing in answered ${status}: ${JSON.stringify(body)}`)
  return (body as SignedIn).token
}
/** What happened, newest first. */
export async function audited(host: TestHost, event: string): Promise<string[]> {
  const { body } = await host.json('GET', `/api/audit/recent?limit=100&event_type=${event}`, undefined, operator)
  return body.entries.map(({ details }: { details: string }) => details)
}
