import { createHmac } from 'node:crypto'
import { exportJWK, exportSPKI, generateKeyPair, importJWK, SignJWT } from 'jose'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  audited,
  bearer,
  key,
  operator,
  signIn,
  startSignIn,
  tokenOf,
  withForger,
  withOpenId,
} from '../plugins/sso/rig.ts'
import type { Forger } from '../support/openid.ts'
import { freePort, Visitor } from '../support/openid.ts'
import type { TestHost } from '../support/host.ts'

const b64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const sessions = async (host: TestHost): Promise<number> =>
  (await audited(host, 'auth_attempt')).filter((line) => line.startsWith('signed in')).length
/** Goes to the provider and stops where it sends the browser back. */
async function leftAt(host: TestHost, visitor: Visitor, path = '/api/auth/login'): Promise<URL> {
  const response = await visitor.go(host.url + path, { until: (url) => url.pathname === '/api/auth/callback' })
  return new URL(response.headers.get('location') ?? '')
}

describe('threats: OIDC pitfalls', () => {
  const stranger = generateKeyPair('RS256', { extractable: true })
  it.each<[string, (forger: Forger) => unknown, string?]>([
    [
      'a token for somebody else',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, aud: 'another-client' })
      },
      'unexpected JWT "aud" (audience) claim value',
    ],
    [
      'a token for several without a word for whom',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, aud: ['svc', 'another-client'] })
      },
      'ID Token "aud" (audience) claim includes additional untrusted audiences',
    ],
    [
      'a token of another issuer',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, iss: 'https://accounts.example.org' })
      },
      'unexpected JWT "iss" (issuer) claim value',
    ],
    [
      'a token that has expired',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, exp: Math.floor(Date.now() / 1000) - 120 })
      },
      'unexpected JWT "exp" (expiration time) claim value, expiration is past current timestamp',
    ],
    [
      'a token that never expires',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, exp: undefined })
      },
      'JWT "exp" (expiration time) claim missing',
    ],
    [
      'a token of another sign-in',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, nonce: 'of-yesterday' })
      },
      'unexpected ID Token "nonce" claim value',
    ],
    [
      'a token without a nonce',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, nonce: undefined })
      },
      'JWT "nonce" (nonce) claim missing',
    ],
    [
      'a token without a signature',
      (forger) => {
        forger.sign = async (claims) => `${b64({ alg: 'none' })}.${b64(claims)}.`
      },
      'unexpected JWT "alg" header parameter',
    ],
    [
      'no signature, which the provider claims to be right',
      (forger) => {
        forger.metadata = (document) => ({ ...document, id_token_signing_alg_values_supported: ['none', 'RS256'] })
        forger.sign = async (claims) => `${b64({ alg: 'none' })}.${b64(claims)}.`
      },
      'unexpected JWT "alg" header parameter',
    ],
    [
      'the public key as a secret (HS256)',
      (forger) => {
        forger.metadata = (document) => ({ ...document, id_token_signing_alg_values_supported: ['RS256', 'HS256'] })
        forger.sign = async (claims) => {
          const pem = await exportSPKI((await importJWK({ ...forger.publicKey, alg: 'RS256' })) as CryptoKey)
          const head = `${b64({ alg: 'HS256', kid: 'first' })}.${b64(claims)}`
          return `${head}.${createHmac('sha256', pem).update(head).digest('base64url')}`
        }
      },
      'unexpected JWT "alg" header parameter',
    ],
    [
      'the secret of the client as a key (HS256)',
      (forger) => {
        forger.metadata = (document) => ({ ...document, id_token_signing_alg_values_supported: ['RS256', 'HS256'] })
        forger.sign = (claims) =>
          new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode('the-secret-of-svc'))
      },
      'unexpected JWT "alg" header parameter',
    ],
    [
      'a signature of a key it does not have',
      (forger) => {
        forger.sign = async (claims) =>
          new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'first' }).sign((await stranger).privateKey)
      },
      'JWT signature verification failed',
    ],
    [
      'a key that the token brings itself',
      (forger) => {
        forger.sign = async (claims) =>
          new SignJWT(claims)
            .setProtectedHeader({ alg: 'RS256', jwk: await exportJWK((await stranger).publicKey) })
            .sign((await stranger).privateKey)
      },
      'JWT signature verification failed',
    ],
    [
      'a claim changed after it was signed',
      (forger) => {
        forger.sign = async (claims) => {
          const pair = await generateKeyPair('RS256', { extractable: true })
          forger.jwks = () => ({ keys: [publicJwk] })
          const publicJwk = { ...(await exportJWK(pair.publicKey)), kid: 'k' }
          const [head, , signature] = (
            await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'k' }).sign(pair.privateKey)
          ).split('.')
          return `${head}.${b64({ ...claims, email: 'root@example.org' })}.${signature}`
        }
      },
      'JWT signature verification failed',
    ],
    [
      'more about somebody else',
      (forger) => {
        forger.userinfo = () => ({ sub: 'root', email: 'root@example.org', email_verified: true })
      },
      'unexpected "response" body "sub" property value',
    ],
    [
      'a back way that names another issuer (mix-up)',
      (forger) => {
        forger.back = (parameters) => ({ ...parameters, iss: 'https://accounts.example.org' })
      },
      'unexpected "iss" (issuer) response parameter value',
    ],
    [
      'a back way that names none, though it said it would',
      (forger) => {
        forger.back = ({ code = '', state = '' }) => ({ code, state })
      },
      'response parameter "iss" (issuer) missing',
    ],
    [
      'keys too large to be read',
      (forger) => {
        forger.jwks = () => ({ keys: [{ kty: 'RSA', n: 'x'.repeat(300_000) }] })
      },
      'failed to parse "response" body as JSON: 127.0.0.1 sent more than 262144 bytes',
    ],
    [
      'a document of another issuer',
      (forger) => {
        forger.metadata = (document) => ({ ...document, issuer: 'https://accounts.example.org' })
      },
    ],
    [
      'a document that leads to a private address',
      (forger) => {
        forger.metadata = (document) => ({ ...document, token_endpoint: 'http://10.0.0.1/token' })
      },
      'Requests to 10.0.0.1 are refused: it is a private network. To permit it, add "10.0.0.1" to [outbound] allow in config.toml',
    ],
    [
      'a document that leads to the metadata of a cloud',
      (forger) => {
        forger.metadata = (document) => ({ ...document, jwks_uri: 'http://169.254.169.254/latest/meta-data/' })
      },
      'Requests to 169.254.169.254 are refused: it is a cloud metadata service, which is never permitted',
    ],
    [
      'a document that leads to a file',
      (forger) => {
        forger.metadata = (document) => ({ ...document, jwks_uri: 'file:///etc/passwd' })
      },
      'only HTTP and HTTPS requests are allowed',
    ],
    [
      'a document that leads to a script',
      (forger) => {
        forger.metadata = (document) => ({ ...document, authorization_endpoint: 'javascript:alert(1)//' })
      },
    ],
  ])('OIDC pitfalls: %s', async (_, misbehave, reason) => {
    const { host, forger } = await withForger()
    await misbehave(forger)
    const { status, body } = await signIn(host)
    expect([status, body.error.message]).toEqual([
      502,
      expect.stringMatching(/^The (answer of the )?provider "127\.0\.0\.1" could not be (used|reached)$/),
    ])
    expect(await sessions(host)).toBe(0)
    // An unreachable provider counts as nobody's attempt.
    if (reason === undefined) expect(host.log.join('\n')).toContain('could not be reached')
    else
      expect(await audited(host, 'auth_attempt')).toEqual([
        `refused: a sign-in: ${body.error.message} (${reason}) from 127.0.0.1 for GET /api/auth/callback`,
      ])
  })

  it.each<[string, (forger: Forger) => unknown, Record<string, unknown>, string]>([
    [
      'an address that is not verified',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email_verified: false })
      },
      {},
      'has not verified',
    ],
    [
      'an address that nothing is said about',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email_verified: undefined })
      },
      {},
      'has not verified',
    ],
    [
      'an address verified by a word that is none',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email_verified: 'no' })
      },
      {},
      'has not verified',
    ],
    [
      'an address of another domain',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email: 'eve@evil.example' })
      },
      {},
      'not among those',
    ],
    [
      'a domain that only ends like ours',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email: 'eve@notexample.org' })
      },
      {},
      'not among those',
    ],
    [
      'a domain below ours',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email: 'eve@evil.example.org' })
      },
      {},
      'not among those',
    ],
    [
      'an address of two domains',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email: 'eve@evil.example@example.org' })
      },
      {},
      'sent no e-mail address',
    ],
    [
      'an address with a name around it',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email: '"eve@evil.example" <x@example.org>' })
      },
      {},
      'sent no e-mail address',
    ],
    [
      'no address',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email: undefined })
      },
      {},
      'sent no e-mail address',
    ],
    [
      'the address of somebody else, said elsewhere',
      (forger) => {
        forger.claims = (claims) => ({ ...claims, email: 'eve@evil.example' })
        forger.userinfo = () => ({ sub: 'eve', email: 'ada@example.org', email_verified: true })
      },
      {},
      'not among those',
    ],
    [
      'another address than the only one allowed',
      () => {},
      { allowed_domains: [], allowed_emails: ['ada@example.org'] },
      'not among those',
    ],
  ])('OIDC pitfalls: %s lets nobody in', async (_, misbehave, section, reason) => {
    const { host, forger } = await withForger(section)
    misbehave(forger)
    const { status, body } = await signIn(host)
    expect([status, body.error.code, body.error.message]).toEqual([403, 'forbidden', expect.stringContaining(reason)])
    expect(await sessions(host)).toBe(0)
  })

  it('OIDC pitfalls: without a rule who may sign in nobody may', async () => {
    const { host, forger } = await withForger({ allowed_domains: [] })
    expect((await host.json('GET', '/api/auth/login')).status).toBe(401)
    const { status, body } = await host.json('GET', '/api/auth/login', undefined, operator)
    expect([status, body.error.message]).toEqual([
      503,
      expect.stringContaining('nobody can sign in: set allowed_domains'),
    ])
    expect(forger.asked).toEqual([])
  })

  it('OIDC pitfalls: a state counts once, and so does a code', async () => {
    const { host, forger } = await withForger()
    const visitor = new Visitor()
    const back = await leftAt(host, visitor)
    const [[name = '', value = ''] = []] = visitor.cookies(back)
    const again = () => fetch(back, { headers: { cookie: `${name}=${value}` } })
    expect((await again()).status).toBe(200)
    const replayed = await again()
    expect([replayed.status, ((await replayed.json()) as { error: { message: string } }).error.message]).toEqual([
      400,
      expect.stringContaining('begin again'),
    ])
    expect(forger.exchanged).toHaveLength(1)
    // Another sign-in of the same browser that brings the old code: the provider says no.
    const next = await leftAt(host, visitor)
    next.searchParams.set('code', back.searchParams.get('code') ?? '')
    expect((await visitor.go(next.href)).status).toBe(502)
    expect(await sessions(host)).toBe(1)
  })

  it('OIDC pitfalls: an answer that another browser got is worth nothing (forced sign-in)', async () => {
    const { host, forger } = await withForger()
    const attacker = new Visitor()
    const back = await leftAt(host, attacker)
    expect((await fetch(back)).status).toBe(400)
    const victim = new Visitor()
    await leftAt(host, victim)
    expect((await victim.go(back.href)).status).toBe(400)
    for (const cookie of [
      'svc-sign-in=',
      'svc-sign-in=AAAA',
      `svc-sign-in=${Buffer.alloc(200).toString('base64url')}`,
      `svc-sign-in=x; svc-sign-in=${[...attacker.cookies(back).values()].join('')}`,
    ]) {
      expect((await fetch(back, { headers: { cookie } })).status).toBe(400)
    }
    expect(forger.exchanged).toEqual([])
    // Nor did all that spoil it for the one it belongs to.
    expect((await attacker.go(back.href)).status).toBe(200)
  })

  it('OIDC pitfalls: a state that lies too long is over', async () => {
    const { host } = await withForger()
    const visitor = new Visitor()
    const back = await leftAt(host, visitor)
    const { now } = Date
    Date.now = () => now() + 601_000
    onTestFinished(() => {
      Date.now = now
    })
    expect((await visitor.go(back.href)).status).toBe(400)
  })

  it('OIDC pitfalls: the code is of no use to whoever sees it: only this daemon knows the other half (PKCE)', async () => {
    const { host, forger } = await withForger()
    const visitor = new Visitor()
    await visitor
      .go(host.url + '/api/auth/login', { until: (url) => url.pathname === '/authorize' })
      .then(async (response) => {
        const url = new URL(response.headers.get('location') ?? '')
        expect([url.searchParams.get('code_challenge_method'), url.searchParams.get('code_challenge')]).toEqual([
          'S256',
          expect.stringMatching(/^[\w-]{43}$/),
        ])
        expect([url.searchParams.get('response_type'), url.searchParams.get('redirect_uri')]).toEqual([
          'code',
          `${host.url}/api/auth/callback`,
        ])
        await visitor.go(url.href)
      })
    expect(forger.exchanged.map((form) => [form.get('code_verifier'), form.get('redirect_uri')])).toEqual([
      [expect.stringMatching(/^[\w-]{43}$/), `${host.url}/api/auth/callback`],
    ])
  })

  it("OIDC pitfalls: nobody is sent to an address of somebody's choosing", async () => {
    const { host, forger } = await withForger()
    const evil = 'https://evil.example/'
    for (const path of ['', '/oidc'].flatMap((one) =>
      ['redirect_uri', 'redirect_url', 'return_to', 'next', 'issuer'].map(
        (name) => `/api/auth/login${one}?${name}=${encodeURIComponent(evil)}`,
      ),
    )) {
      const response = await fetch(host.url + path, { redirect: 'manual' })
      expect([response.status, new URL(response.headers.get('location') ?? '').origin]).toEqual([302, forger.origin])
      expect(response.headers.get('location')).not.toContain('evil')
    }
    expect(
      (await fetch(`${host.url}/api/auth/login?to=${encodeURIComponent(evil)}`, { redirect: 'manual' })).status,
    ).toBe(400)
    expect((await fetch(`${host.url}/api/auth/login/${encodeURIComponent(evil)}`, { redirect: 'manual' })).status).toBe(
      404,
    )
    // Another Host is sent to the configured one, once.
    const moved = await fetch(`http://localhost:${new URL(host.url).port}/api/auth/login?to=page`, {
      redirect: 'manual',
    })
    expect(moved.headers.get('location')).toBe(`${host.url}/api/auth/login/oidc?to=page&moved=1`)
  })

  it('OIDC pitfalls: a redirect address that another one would be taken for is refused by the provider, and by us', async () => {
    const { host, openId } = await withOpenId()
    const authorize = new URL(
      `${openId.issuer}/auth?client_id=svc&response_type=code&scope=openid&code_challenge=${'a'.repeat(43)}&code_challenge_method=S256&redirect_uri=${encodeURIComponent(`${host.url}/api/auth/callback/../evil`)}`,
    )
    expect((await fetch(authorize, { redirect: 'manual' })).status).toBe(400)
    const port = await freePort()
    for (const redirect_url of [`http://evil.example/api/auth/callback`, `http://127.0.0.1:${port}/evil`]) {
      await using other = await startSignIn(openId.issuer, port, { redirect_url })
      expect((await other.json('GET', '/api/auth/login', undefined, operator)).status).toBe(503)
    }
  })

  it('OIDC pitfalls: keys that the provider changed count at once, old ones no more', async () => {
    const { host, forger } = await withForger()
    expect((await signIn(host)).status).toBe(200)
    await forger.rotate()
    expect((await signIn(host)).status).toBe(200)
    expect(forger.asked.filter((path) => path === '/.well-known/openid-configuration')).toHaveLength(1)
  })

  it('OIDC pitfalls: a provider that redirects its endpoints is not followed, not even to itself', async () => {
    const { host, forger } = await withForger()
    forger.metadata = (document) => ({ ...document, jwks_uri: `${forger.origin}/moved` })
    expect((await signIn(host)).status).toBe(502)
    expect([forger.asked.includes('/moved'), forger.asked.includes('/jwks')]).toEqual([true, false])
  })

  it('OIDC pitfalls: a provider on an address that is not permitted is not asked', async () => {
    const { host, forger } = await withForger({}, { outbound: { allow: [] } })
    const { status, body } = await signIn(host)
    expect([status, body.error.message]).toEqual([502, 'The provider "127.0.0.1" could not be reached'])
    expect(forger.asked).toEqual([])
    expect(host.log.join('\n')).toContain('to [outbound] allow')
  })

  it('OIDC pitfalls: a form another site posts is taken at the callback only, and does nothing without the cookie', async () => {
    const { host, forger } = await withForger({ response_mode: 'form_post' })
    const foreign = {
      origin: 'https://evil.example',
      'sec-fetch-site': 'cross-site',
      'content-type': 'application/x-www-form-urlencoded',
    }
    const posted = await fetch(`${host.url}/api/auth/callback`, {
      method: 'POST',
      redirect: 'manual',
      headers: foreign,
      body: 'code=c&state=s&evil=https://evil.example',
    })
    // Back to ourselves, where the browser adds its cookie or has none; never anywhere else, and nothing else comes
    // along.
    expect([posted.status, posted.headers.get('location'), posted.headers.get('access-control-allow-origin')]).toEqual([
      303,
      '/api/auth/callback?code=c&state=s',
      null,
    ])
    for (const path of ['/api/auth/logout', '/api/auth/session', '/api/auth/introspect', '/api/pairing/request']) {
      expect([
        path,
        (await fetch(host.url + path, { method: 'POST', headers: { ...foreign, ...operator }, body: '{}' })).status,
      ]).toEqual([path, 403])
    }
    expect(forger.exchanged).toEqual([])
  })

  it('OIDC pitfalls: guessing at the callback fills the bucket of wrong keys', async () => {
    const { host } = await withForger({}, { rate_limit: { failed_auth_per_minute: 5 } })
    const guess = async (path: string, init?: RequestInit) => (await fetch(host.url + path, init)).status
    // What a page of another site can cause: no cookie comes along, and it locks nobody out.
    for (let n = 0; n < 10; n++) expect(await guess('/api/auth/callback?code=x&state=y')).toBe(400)
    const statuses: number[] = []
    for (let n = 0; n < 7; n++)
      statuses.push(
        await guess(
          n % 2 ? `/api/auth/callback?code=x&state=s${n}` : '/api/auth/session',
          n % 2
            ? { headers: { cookie: 'svc-sign-in=AAAA' } }
            : { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"code":"x"}' },
        ),
      )
    expect(statuses).toEqual([400, 400, 400, 400, 400, 429, 429])
    expect(await guess('/api/audit/verify', { headers: operator })).toBe(429)
  })

  it('OIDC pitfalls: while nobody can sign in none of the routes is public', async () => {
    const { host } = await withForger({ enabled: false })
    const paths: [string, string][] = [
      ['GET', '/api/auth/providers'],
      ['GET', '/api/auth/login'],
      ['GET', '/api/auth/login/oidc'],
      ['GET', '/api/auth/callback?code=x&state=y'],
      ['POST', '/api/auth/callback'],
      ['POST', '/api/auth/session'],
    ]
    for (const [method, path] of paths)
      expect([path, (await fetch(host.url + path, { method })).status]).toEqual([path, 401])
    expect(
      (
        await fetch(`${host.url}/api/auth/callback`, {
          method: 'POST',
          headers: { ...operator, origin: 'https://evil.example' },
        })
      ).status,
    ).toBe(403)
    const statuses = await Promise.all(
      paths.map(
        async ([method, path]) =>
          (
            await fetch(host.url + path, {
              method,
              headers: { ...operator, 'content-type': 'application/json' },
              ...(method === 'POST' ? { body: '{"code":"x"}' } : {}),
            })
          ).status,
      ),
    )
    expect(statuses).toEqual([200, 503, 503, 503, 503, 503])
  })

  it('OIDC pitfalls: no secret of a sign-in is in a log, the audit trail, the database or the configuration that is shown', async () => {
    const { host, forger } = await withForger({}, {}, { memory: false })
    const token = await tokenOf(host)
    const verifier = forger.exchanged[0]?.get('code_verifier') ?? ''
    const shown = [
      host.log.join('\n'),
      JSON.stringify((await host.json('GET', '/api/audit/recent?limit=100', undefined, operator)).body),
      JSON.stringify((await host.json('GET', '/api/config', undefined, operator)).body),
    ].join('\n')
    for (const secret of [token, token.slice(8), verifier, 'the-secret-of-svc', 'code-0'])
      expect(shown.includes(secret)).toBe(false)
    const { readdir, readFile } = await import('node:fs/promises')
    for (const file of await readdir(`${host.home}/data`, { withFileTypes: true, recursive: true })) {
      if (file.isFile())
        expect((await readFile(`${file.parentPath}/${file.name}`)).includes(token.slice(8))).toBe(false)
    }
  })
})

describe('threats: Introspect / userinfo as oracle', () => {
  const inactive = { active: false, error: 'The token is not active' }
  const ask = async (host: TestHost, token: string, headers: Record<string, string>, more: object = {}) =>
    (await host.json('POST', '/api/auth/introspect', { token, ...more }, headers)).body

  it('Introspect / userinfo as oracle: nobody without a credential learns anything', async () => {
    const { host } = await withForger()
    const token = await tokenOf(host)
    for (const headers of [{}, bearer('guess')] as Record<string, string>[]) {
      expect((await host.json('POST', '/api/auth/introspect', { token }, headers)).status).toBe(401)
      expect((await host.json('GET', '/api/auth/userinfo', undefined, headers)).status).toBe(401)
    }
  })

  it('Introspect / userinfo as oracle: the token of somebody else, of a device, the API key and nonsense are one answer', async () => {
    const { host, forger } = await withForger({}, { pairing: { enabled: true } })
    const mine = await tokenOf(host)
    forger.claims = (claims) => ({ ...claims, sub: 'mallory', email: 'mallory@example.org' })
    forger.userinfo = () => ({ sub: 'mallory' })
    const theirs = await tokenOf(host)
    const {
      body: { pairing_code },
    } = await host.json('POST', '/api/pairing/request', {}, operator)
    const {
      body: { api_key: device },
    } = await host.json('POST', '/api/pairing/complete', { pairing_code, display_name: 'phone', platform: 'android' })
    expect(device).toMatch(/./)
    const texts = await Promise.all(
      [theirs, device, key, 'nonsense', `${mine}x`, mine.slice(0, -1)].map(async (token) =>
        (
          await host.fetch('/api/auth/introspect', {
            method: 'POST',
            headers: { ...bearer(mine), 'content-type': 'application/json' },
            body: JSON.stringify({ token }),
          })
        ).text(),
      ),
    )
    expect(new Set(texts)).toEqual(new Set([JSON.stringify(inactive)]))
    expect(await ask(host, mine, bearer(mine))).toMatchObject({
      active: true,
      sub: 'eve',
      email: 'eve@example.org',
      provider: 'oidc',
      iss: forger.issuer,
      roles: [],
    })
    expect(await ask(host, mine, bearer(mine), { provider: 'another' })).toEqual(inactive)
    expect(await ask(host, mine, bearer(device))).toEqual(inactive)
    // Who holds the key sees all.
    expect(await ask(host, theirs, operator)).toMatchObject({ active: true, sub: 'mallory' })
    for (const [token, sub] of [
      [mine, 'eve'],
      [theirs, 'mallory'],
    ] as const)
      expect((await host.json('GET', '/api/auth/userinfo', undefined, bearer(token))).body.sub).toBe(sub)
  })

  it('Introspect / userinfo as oracle: a token that ended is one that never was', async () => {
    const { host } = await withForger({ session_ttl_secs: 60 })
    const [first, second] = [await tokenOf(host), await tokenOf(host)]
    expect((await host.json('POST', '/api/auth/logout', undefined, bearer(first))).body).toEqual({
      status: 'signed_out',
    })
    expect(await ask(host, first, operator)).toEqual(inactive)
    const { now } = Date
    Date.now = () => now() + 61_000
    onTestFinished(() => {
      Date.now = now
    })
    expect(await ask(host, second, operator)).toEqual(inactive)
    expect((await host.json('GET', '/api/auth/userinfo', undefined, bearer(second))).status).toBe(401)
  })

  it('Introspect / userinfo as oracle: asking for many tokens ends like guessing many keys', async () => {
    const { host } = await withForger({}, { rate_limit: { failed_auth_per_minute: 5 } })
    const token = await tokenOf(host)
    const statuses: number[] = []
    for (let n = 0; n < 7; n++)
      statuses.push((await host.json('POST', '/api/auth/introspect', { token: `guess-${n}` }, bearer(token))).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
    expect((await host.json('GET', '/api/auth/userinfo', undefined, bearer(token))).status).toBe(429)
  })
})
