import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { builtInFolders } from '../../../core/host/folders.ts'
import { freePort, startForger, Visitor } from '../../support/openid.ts'
import { audited, bearer, operator, signIn, startSignIn, tokenOf, withForger, withOpenId } from './rig.ts'

test('somebody signs in at a real provider and uses the daemon with the token', async () => {
  const { host } = await withOpenId()
  const visitor = new Visitor()
  const { status, body } = await signIn(host, visitor)
  expect([status, body]).toEqual([
    200,
    {
      token: expect.stringMatching(/^svc_sso_[\w-]{43}$/),
      token_type: 'Bearer',
      expires_in: 86_400,
      provider: 'oidc',
      user: { sub: 'ada', email: 'ada@example.org', name: 'Ada Lovelace', picture: null },
    },
  ])
  expect((await host.fetch('/api/audit/verify')).status).toBe(401)
  expect((await host.fetch('/api/audit/verify', { headers: bearer(body.token) })).status).toBe(200)
  expect([...visitor.cookies(new URL(host.url))]).toEqual([])
  expect(await audited(host, 'auth_attempt')).toEqual([
    expect.stringMatching(/^signed in: ada@example\.org \(ada of provider "oidc", sign-in [\w-]+\) from 127\.0\.0\.1$/),
  ])
  expect((await host.json('GET', '/api/auth/userinfo', undefined, bearer(body.token))).body).toEqual({
    auth_method: 'external_oauth',
    issuer: expect.stringContaining('http://127.0.0.1:'),
    provider: 'oidc',
    sub: 'ada',
    email: 'ada@example.org',
    email_verified: true,
    name: 'Ada Lovelace',
    picture: null,
    user_id: expect.stringMatching(/^[\da-f-]{36}$/),
    roles: [],
  })
  expect((await host.json('GET', '/api/auth/userinfo', undefined, operator)).body).toEqual({
    auth_method: 'api_key',
    issuer: '',
  })
})

test('a provider may answer with a form, which the browser sends on with its cookie', async () => {
  const { host } = await withOpenId({ response_mode: 'form_post' })
  const visitor = new Visitor()
  const page = await (await visitor.go(`${host.url}/api/auth/login`)).text()
  const fields = [...page.matchAll(/<input[^>]*name="(\w+)"[^>]*value="([^"]*)"/g)].map(
    ([, name = '', value = '']): [string, string] => [name, value.replaceAll('&#x2F;', '/')],
  )
  expect(fields.map(([name]) => name).toSorted()).toEqual(['code', 'iss', 'state'])
  const form = {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: visitor.trail[0] ?? '',
      'sec-fetch-site': 'cross-site',
    },
    body: new URLSearchParams(fields).toString(),
  }
  const response = await visitor.go(`${host.url}/api/auth/callback`, { init: form, withoutCookies: true })
  expect([response.status, ((await response.json()) as { user: { sub: string } }).user.sub]).toEqual([200, 'ada'])
})

test('the callback takes the same as JSON, and says what is wrong with what it cannot take', async () => {
  const { host } = await withForger()
  const visitor = new Visitor()
  const response = await visitor.go(`${host.url}/api/auth/login`, {
    until: (url) => url.pathname === '/api/auth/callback',
  })
  const { searchParams } = new URL(response.headers.get('location') ?? '')
  const post = (body: string, type: string) =>
    visitor.go(`${host.url}/api/auth/callback`, { init: { method: 'POST', headers: { 'content-type': type }, body } })
  const said = async (answer: Response) => [
    answer.status,
    ((await answer.json()) as { error: { message: string } }).error.message,
  ]
  expect(await said(await post('{', 'application/json'))).toEqual([400, 'The body is not JSON'])
  expect(await said(await post('{"state":1}', 'application/json'))).toEqual([400, 'body: code and state are texts'])
  expect(await said(await post('code=1', 'text/plain'))).toEqual([
    400,
    expect.stringContaining('application/x-www-form-urlencoded'),
  ])
  expect(await said(await post('a=1', 'application/x-www-form-urlencoded'))).toEqual([
    400,
    expect.stringContaining('code and state are missing'),
  ])
  expect(await said(await fetch(`${host.url}/api/auth/callback`))).toEqual([
    400,
    expect.stringContaining('code and state are missing'),
  ])
  expect(await said(await fetch(`${host.url}/api/auth/callback?code=a&code=b&state=c`))).toEqual([
    400,
    expect.stringContaining('code'),
  ])
  expect((await post(JSON.stringify(Object.fromEntries(searchParams)), 'application/json')).status).toBe(200)
})

test('who is refused by the provider is told so, in words that are not its own', async () => {
  const { host, forger } = await withForger()
  forger.back = ({ state = '', iss = '' }) => ({
    error: 'access_denied',
    error_description: '<script>alert(1)</script>',
    state,
    iss,
  })
  expect(await signIn(host)).toEqual({ status: 401, body: { error: 'The provider refused: access_denied' } })
  forger.back = ({ state = '', iss = '' }) => ({ error: 'a"b', state, iss })
  expect((await signIn(host)).body).toEqual({ error: 'The provider refused: for a reason it did not name' })
})

test('several providers have a button each, and each its own people', async () => {
  const [port, one, other] = await Promise.all([freePort(), startForger(), startForger()])
  const host = await startSignIn(one.issuer, port, {
    issuer_url: undefined,
    client_id: 'svc',
    client_secret: undefined,
    scopes: ['email'],
    providers: [
      {
        id: 'work',
        issuer_url: one.issuer,
        display_name: 'Work',
        allowed_domains: ['example.org'],
        client_secret: 'the secret of work',
      },
      { id: 'home', issuer_url: other.issuer, allowed_domains: ['home.example'], client_secret: 'the secret of home' },
    ],
  })
  onTestFinished(async () => {
    await host[Symbol.asyncDispose]()
    await Promise.all([one, other].map((forger) => forger[Symbol.asyncDispose]()))
  })
  expect((await host.json('GET', '/api/auth/providers')).body).toEqual({
    enabled: true,
    providers: [
      { id: 'work', display_name: 'Work' },
      { id: 'home', display_name: '127.0.0.1' },
    ],
  })
  expect(await signIn(host, new Visitor(), '/api/auth/login/work')).toMatchObject({
    status: 200,
    body: { provider: 'work' },
  })
  expect((await signIn(host, new Visitor(), '/api/auth/login/home')).status).toBe(403)
  expect((await signIn(host, new Visitor(), '/api/auth/login/none')).body.error.code).toBe('provider_not_found')
  // The state belongs to one of them: an answer that the other one sends on is not exchanged there (mix-up).
  const visitor = new Visitor()
  const back = await visitor.go(`${host.url}/api/auth/login/home`, {
    until: (url) => url.pathname === '/api/auth/callback',
  })
  const mixed = new URL(back.headers.get('location') ?? '')
  mixed.searchParams.set('iss', one.issuer)
  const before = [one.exchanged.length, other.exchanged.length]
  expect((await visitor.go(mixed.href)).status).toBe(502)
  expect([one.exchanged.length, other.exchanged.length]).toEqual(before)
  const shown = JSON.stringify((await host.json('GET', '/api/config', undefined, operator)).body)
  expect(shown).not.toContain('the secret of')
})

test("signing out ends the token, what was opened with it, and nobody else's", async () => {
  const { host } = await withForger({}, {}, { plugins: ['audit', 'sso', 'system', 'settings', 'activity'] })
  const [mine, theirs] = [await tokenOf(host), await tokenOf(host)]
  const stream = await host.fetch('/api/logs/stream', { headers: bearer(mine) })
  expect(stream.status).toBe(200)
  expect((await host.json('POST', '/api/auth/logout', undefined, bearer(mine))).body).toEqual({ status: 'signed_out' })
  await expect(stream.text()).rejects.toThrow()
  expect([
    (await host.fetch('/api/auth/userinfo', { headers: bearer(mine) })).status,
    (await host.fetch('/api/auth/userinfo', { headers: bearer(theirs) })).status,
  ]).toEqual([401, 200])
  expect(await audited(host, 'auth_revoked')).toEqual([
    expect.stringMatching(/^signed out: eve@example\.org .* by themselves at 127\.0\.0\.1$/),
  ])
  expect((await host.json('POST', '/api/auth/logout', undefined, operator)).status).toBe(409)
})

test('a sign-in outlives a restart and a reload, and ends with the rule that let it in', async () => {
  const port = await freePort()
  const forger = await startForger()
  onTestFinished(() => forger[Symbol.asyncDispose]())
  const first = await startSignIn(forger.issuer, port, {}, {}, { memory: false })
  const token = await tokenOf(first)
  const asks = async (host: typeof first) => (await host.fetch('/api/auth/userinfo', { headers: bearer(token) })).status
  const during = (async () => {
    const seen = new Set<number>()
    for (let n = 0; n < 40; n++) seen.add(await asks(first))
    return [...seen]
  })()
  await first.app.daemon.reload('sso')
  expect([await during, await asks(first)]).toEqual([[200], 200])
  await first.stop()
  const again = await startSignIn(forger.issuer, port, {}, {}, { memory: false, home: first.home })
  expect(await asks(again)).toBe(200)
  await again.stop()
  const stricter = await startSignIn(
    forger.issuer,
    port,
    { allowed_domains: ['other.example'] },
    {},
    { memory: false, home: first.home },
  )
  expect(await asks(stricter)).toBe(401)
  await stricter.stop()
  const off = await startSignIn(forger.issuer, port, { enabled: false }, {}, { memory: false, home: first.home })
  expect(await asks(off)).toBe(401)
  await off.stop()
})

test('one person has so many sign-ins, the oldest ends for a new one; and all together have so many', async () => {
  const { host, forger } = await withForger({ max_sessions: 3, max_sessions_per_user: 2 })
  const tokens = [await tokenOf(host), await tokenOf(host), await tokenOf(host)]
  const statuses = await Promise.all(
    tokens.map(async (token) => (await host.fetch('/api/auth/userinfo', { headers: bearer(token) })).status),
  )
  expect(statuses).toEqual([401, 200, 200])
  const another = (sub: string) => {
    forger.claims = (claims) => ({ ...claims, sub })
    forger.userinfo = () => ({ sub })
  }
  another('bob')
  await tokenOf(host)
  another('carol')
  expect(await signIn(host)).toMatchObject({
    status: 503,
    body: { error: { message: 'Too many people are signed in (external_auth.max_sessions is 3)' } },
  })
})

test('the page fetches its token with the code of its address and the cookie of its browser, once', async () => {
  const { host } = await withForger()
  const visitor = new Visitor()
  const back = await visitor.go(`${host.url}/api/auth/login?to=page`, { until: (url) => url.pathname === '/' })
  const place = new URL(back.headers.get('location') ?? '', host.url)
  expect([back.status, place.pathname, place.hash]).toEqual([303, '/', expect.stringMatching(/^#sso=[\w-]{43}$/)])
  expect(back.headers.get('set-cookie')).toMatch(
    /^svc-sign-in=[\w-]{43}; Max-Age=60; Path=\/api\/auth; HttpOnly; SameSite=Strict$/,
  )
  const fetchToken = (code: string, who = visitor) =>
    who.go(`${host.url}/api/auth/session`, {
      init: { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code }) },
    })
  const code = place.hash.slice(5)
  expect((await fetchToken(code, new Visitor())).status).toBe(400)
  expect((await fetchToken('x')).status).toBe(400)
  const fetched = await fetchToken(code)
  expect([fetched.status, await fetched.json()]).toEqual([
    200,
    expect.objectContaining({ token: expect.stringMatching(/^svc_sso_/), token_type: 'Bearer' }),
  ])
  expect((await fetchToken(code)).status).toBe(400)
})

test('what goes wrong on the way back to the page is told by a word it knows', async () => {
  const { host, forger } = await withForger()
  const end = async (visitor: Visitor) =>
    (await visitor.go(`${host.url}/api/auth/login?to=page`, { until: (url) => url.pathname === '/' })).headers.get(
      'location',
    )
  forger.claims = (claims) => ({ ...claims, email_verified: false })
  expect(await end(new Visitor())).toBe('/#sso-problem=denied')
  forger.claims = (claims) => ({ ...claims, nonce: 'x' })
  expect(await end(new Visitor())).toBe('/#sso-problem=failed')
  forger.back = ({ state = '', iss = '' }) => ({ error: 'access_denied', state, iss })
  expect(await end(new Visitor())).toBe('/#sso-problem=cancelled')
  const late = await fetch(`${host.url}/api/auth/callback?code=x&state=y`, {
    redirect: 'manual',
    headers: { accept: 'text/html,application/xhtml+xml' },
  })
  expect([late.status, late.headers.get('location')]).toEqual([303, '/#sso-problem=expired'])
})

test('behind https the cookie has the prefix that keeps neighbours from planting one', async () => {
  const forger = await startForger()
  onTestFinished(() => forger[Symbol.asyncDispose]())
  const host = await startSignIn(forger.issuer, await freePort(), {
    redirect_url: 'https://svc.example/api/auth/callback',
  })
  onTestFinished(() => host[Symbol.asyncDispose]())
  const response = await fetch(`${host.url}/api/auth/login?moved=1`, { redirect: 'manual' })
  expect(response.headers.get('set-cookie')).toMatch(
    /^__Host-svc-sign-in=[\w-]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  expect((await fetch(`${host.url}/api/auth/login`, { redirect: 'manual' })).headers.get('location')).toBe(
    'https://svc.example/api/auth/login/oidc?moved=1',
  )
})

test('what is wrong with the configuration is said to who may know it, and nobody signs in', async () => {
  for (const [section, said] of [
    [{ issuer_url: undefined }, 'external_auth.issuer_url is missing'],
    [{ issuer_url: 'http://accounts.example.org' }, 'issuer_url must be https'],
    [{ client_id: undefined }, 'client_id is missing'],
    [
      { client_secret: undefined, client_secret_env: 'SVC_TEST_NO_SUCH_VARIABLE' },
      'the variable SVC_TEST_NO_SUCH_VARIABLE',
    ],
    [{ allowed_domains: ['*.example.org'] }, '"*.example.org" is neither a domain'],
    [{ token_url: 'https://accounts.example.org/token' }, 'auth_url, token_url and jwks_uri go together'],
    [{ providers: [{ id: 'oidc', issuer_url: 'https://accounts.example.org' }] }, 'two providers with this id'],
  ] as [Record<string, unknown>, string][]) {
    const host = await startSignIn('https://accounts.example.org', 0, section)
    try {
      expect((await host.fetch('/api/auth/providers')).status).toBe(401)
      const { status, body } = await host.json('GET', '/api/auth/login', undefined, operator)
      expect([said, status, body.error.message]).toEqual([said, 503, expect.stringContaining(said)])
      expect(host.log.join('\n')).toContain('sign-in is off')
    } finally {
      await host[Symbol.asyncDispose]()
    }
  }
})

test('the addresses of a provider without a discovery document stand in the configuration', async () => {
  const [port, forger] = await Promise.all([freePort(), startForger()])
  const host = await startSignIn(forger.issuer, port, {
    scopes: ['email'],
    auth_url: `${forger.issuer}/authorize`,
    token_url: `${forger.issuer}/token`,
    jwks_uri: `${forger.issuer}/jwks`,
  })
  onTestFinished(async () => {
    await host[Symbol.asyncDispose]()
    await forger[Symbol.asyncDispose]()
  })
  expect((await signIn(host)).status).toBe(200)
  expect(forger.asked).toEqual(['/authorize', '/token', '/jwks'])
})

test('without a key on the daemon everything is open as it is, and a sign-in changes nothing', async () => {
  const { host } = await withForger({}, { api_key: '' })
  const token = await tokenOf(host)
  expect((await host.json('GET', '/api/auth/userinfo', undefined, bearer(token))).body).toEqual({
    auth_method: 'none',
    issuer: '',
  })
  expect((await host.json('GET', '/api/auth/userinfo')).status).toBe(200)
})

test('a changed rule of who is let in, or whether anybody is, holds at once', async () => {
  const { host } = await withForger({}, {}, { plugins: ['audit', 'sso', 'settings', 'system', 'activity'] })
  const token = await tokenOf(host)
  const stream = await host.fetch('/api/logs/stream', { headers: bearer(token) })
  const write = async (lines: string) => {
    await writeFile(join(host.home, 'config.toml'), `[external_auth]\n${lines}\n`)
    expect((await host.json('POST', '/api/config/reload', undefined, operator)).status).toBe(200)
    await host.plugin('sso', 'loaded')
  }
  await write('session_ttl_secs = 120')
  expect((await host.fetch('/api/auth/userinfo', { headers: bearer(token) })).status).toBe(200)
  await write('allowed_domains = ["other.example"]')
  expect((await host.fetch('/api/auth/userinfo', { headers: bearer(token) })).status).toBe(401)
  await expect(stream.text()).rejects.toThrow()
  await write('enabled = false')
  expect((await host.fetch('/api/auth/providers')).status).toBe(401)
})

test('who signed in uses agents, and needs the key to change or end the daemon or let others in', async () => {
  const { host } = await withForger({}, {}, { plugins: await builtInFolders() })
  const token = await tokenOf(host)
  const owners = host.app
    .routes()
    .filter(({ effect, auth }) => effect === 'lasting' && auth === 'bearer')
    .map(({ method, path }) => [method, path.replaceAll(/(?:\*\*)?:\w+/g, 'x')] as const)
  expect(owners.length).toBeGreaterThan(15)
  for (const [method, path] of owners) {
    const { status, body } = await host.json(method, path, undefined, bearer(token))
    expect([path, status, body.error.message]).toEqual([path, 403, 'A signed-in user cannot do this: use the API key'])
  }
  expect((await host.json('GET', '/api/agents', undefined, bearer(token))).body).toHaveLength(1)
})

test('whoever holds the key sees who is signed in, and ends it', async () => {
  const { host } = await withForger()
  const [lost, kept] = [await tokenOf(host), await tokenOf(host)]
  const { body } = await host.json('GET', '/api/auth/sessions', undefined, operator)
  expect(body).toMatchObject({ total: 2, sessions: [{ provider: 'oidc', sub: 'eve', email: 'eve@example.org' }, {}] })
  expect(Object.keys(body.sessions[0]).toSorted()).toEqual([
    'created_at',
    'email',
    'expires_at',
    'id',
    'name',
    'provider',
    'sub',
    'user_id',
  ])
  // Both sign-ins are those of one person.
  expect(body.sessions[0].user_id).toBe(body.sessions[1].user_id)
  const remove = (id: string, headers = operator) => host.json('DELETE', `/api/auth/sessions/${id}`, undefined, headers)
  expect((await remove(body.sessions[0].id, bearer(kept))).status).toBe(403)
  expect((await remove(body.sessions[0].id)).body).toEqual({ status: 'signed_out' })
  expect([(await remove(body.sessions[0].id)).status, (await remove('x')).status]).toEqual([404, 400])
  expect(
    await Promise.all(
      [lost, kept].map(async (token) => (await host.fetch('/api/auth/userinfo', { headers: bearer(token) })).status),
    ),
  ).toEqual([401, 200])
  expect(await audited(host, 'auth_revoked')).toEqual([expect.stringContaining('by operator at 127.0.0.1')])
})

test('what the provider has against us is in the log, not in the answer', async () => {
  const { host } = await withOpenId({ client_secret: 'a wrong one' })
  const { status, body } = await signIn(host)
  expect([status, body.error.message]).toEqual([502, 'The answer of the provider "127.0.0.1" could not be used'])
  expect(host.log.join('\n')).toContain('invalid_client')
})
