import { expect, test } from 'vitest'
import { isLoopback } from '../../../core/auth/origin.ts'
import { guarded, open, ping, raw } from '../http/harness.ts'

const ask = async (url: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(`${url}/api/secret`, { headers })
  return {
    status: answer.status,
    body: (await answer.json()) as { error?: unknown; who?: string },
    headers: answer.headers,
  }
}

test('a missing and a wrong key are 401 with the texts clients know', async () => {
  const { url } = await open([guarded], { settings: { apiKey: 'secret' } })
  const missing = await ask(url)
  expect([missing.status, missing.body, missing.headers.get('www-authenticate')]).toEqual([
    401,
    { error: 'Missing Authorization: Bearer <api_key> header' },
    'Bearer',
  ])
  expect((await ask(url, { authorization: 'Bearer ' })).body).toEqual({
    error: 'Missing Authorization: Bearer <api_key> header',
  })
  for (const authorization of ['Bearer wrong', 'Bearer secret2', 'Bearer secre', 'Basic c2VjcmV0', 'secret'])
    expect([authorization, (await ask(url, { authorization })).body]).toEqual([
      authorization,
      { error: 'Invalid API key' },
    ])
})

test('the key is accepted in both headers, whatever the case of the scheme', async () => {
  const { url } = await open([guarded], { settings: { apiKey: '  secret\n' } })
  for (const headers of [
    { authorization: 'Bearer secret' },
    { authorization: 'bearer  secret ' },
    { 'x-api-key': 'secret' },
  ] as Record<string, string>[])
    expect((await ask(url, headers)).body).toEqual({ who: 'operator' })
})

test('a key in the query or a cookie is none', async () => {
  const { url } = await open([guarded], { settings: { apiKey: 'secret' } })
  expect(
    (await fetch(`${url}/api/secret?token=secret&api_key=secret`, { headers: { cookie: 'api_key=secret' } })).status,
  ).toBe(401)
})

test('a blank key counts as none', async () => {
  const { url } = await open([guarded], { settings: { apiKey: '  ' } })
  expect((await ask(url)).body).toEqual({ who: 'anonymous' })
})

test('a changed key holds at the next request', async () => {
  const { url, settings } = await open([guarded], { settings: { apiKey: 'old' } })
  settings.apiKey = 'new'
  expect([
    (await ask(url, { authorization: 'Bearer old' })).status,
    (await ask(url, { authorization: 'Bearer new' })).status,
  ]).toEqual([401, 200])
})

test('after ten wrong keys from one address no key is compared any more, and public routes still answer', async () => {
  const { url, failures } = await open([guarded, ping], { settings: { apiKey: 'secret' } })
  for (let n = 0; n < 10; n++) expect((await ask(url, { authorization: `Bearer guess${n}` })).status).toBe(401)
  const right = await ask(url, { authorization: 'Bearer secret' })
  expect([right.status, right.headers.get('retry-after'), right.body]).toEqual([
    429,
    '60',
    { error: 'Too many failed authentication attempts' },
  ])
  expect((await fetch(`${url}/api/ping`)).status).toBe(200)
  expect(failures).toHaveLength(10)
  expect(failures[0]).toMatchObject({ clientAddress: '127.0.0.1', method: 'GET', path: '/api/secret' })
})

test('who shows the pass of the home is counted apart from others at the same address, and needs the key too', async () => {
  const settings = { apiKey: 'secret', failedAuthPerMinute: 3, tokensPerMinute: 1_000 }
  const { url } = await open([guarded], { settings, isHomePass: (text) => text === 'pass' })
  const status = async (key: string, pass?: string): Promise<number> =>
    (await ask(url, { authorization: `Bearer ${key}`, ...(pass !== undefined && { 'x-svc-home-pass': pass }) })).status
  for (let n = 0; n < 3; n++) expect(await status(`guess${n}`, 'guess')).toBe(401)
  expect([await status('secret'), await status('secret', 'guess')]).toEqual([429, 429])
  expect([await status('secret', 'pass'), await status('guess', 'pass')]).toEqual([200, 401])
  for (let n = 0; n < 2; n++) expect(await status(`guess${n}`, 'pass')).toBe(401)
  expect(await status('secret', 'pass')).toBe(429)
})

test('a missing key is no guess', async () => {
  const { url, failures } = await open([guarded], { settings: { apiKey: 'secret', failedAuthPerMinute: 1 } })
  for (let n = 0; n < 5; n++) expect((await ask(url)).status).toBe(401)
  expect(failures).toEqual([])
  expect((await ask(url, { authorization: 'Bearer secret' })).status).toBe(200)
})

test('a daemon without a key does not listen beyond loopback unless told so', async () => {
  for (const settings of [{ host: '0.0.0.0' }, { host: '::' }, { host: '127.0.0.1', public: true }])
    await expect(open([ping], { settings })).rejects.toThrow('refusing to listen')
  const wide = await open([ping], { settings: { host: '0.0.0.0', allowNoAuth: true } })
  expect((await fetch(`${wide.url}/api/ping`)).status).toBe(200)
  await expect(open([ping], { settings: { host: '0.0.0.0', apiKey: 'k' } })).resolves.toBeDefined()
})

test('without a key only a loopback, bound or configured Host is served', async () => {
  const { port } = await open([ping], { settings: { allowedHosts: ['svc.internal'] } })
  const host = async (value: string) =>
    (await raw(port, `GET /api/ping HTTP/1.1\r\nHost: ${value}\r\nConnection: close\r\n\r\n`)).status
  for (const fine of [
    'localhost',
    `localhost:${port}`,
    `127.0.0.1:${port}`,
    '127.0.0.2',
    `[::1]:${port}`,
    'LOCALHOST',
    'svc.internal:9',
  ])
    expect([fine, await host(fine)]).toEqual([fine, 200])
  for (const foreign of [
    'evil.example',
    '192.168.1.5',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '2130706433',
  ])
    expect([foreign, await host(foreign)]).toEqual([foreign, 403])
  for (const broken of ['', 'a b', 'a/b', 'x@localhost']) expect([broken, await host(broken)]).toEqual([broken, 400])
})

test('with a key any Host is served', async () => {
  const { port } = await open([ping], { settings: { apiKey: 'k' } })
  expect((await raw(port, 'GET /api/ping HTTP/1.1\r\nHost: my.example\r\nConnection: close\r\n\r\n')).status).toBe(200)
})

test('a foreign page may change nothing, and reads nothing', async () => {
  const { url } = await open([guarded, { ...guarded, method: 'POST' }])
  const origin = 'https://evil.example'
  for (const from of [origin, 'null', 'http://localhost.evil.example', 'file://'])
    expect((await fetch(`${url}/api/secret`, { method: 'POST', headers: { origin: from } })).status).toBe(403)
  const read = await fetch(`${url}/api/secret`, { headers: { origin } })
  expect([read.status, read.headers.get('access-control-allow-origin'), read.headers.get('vary')]).toEqual([
    200,
    null,
    'Origin',
  ])
  expect(
    (
      await fetch(`${url}/api/secret`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      })
    ).headers.get('access-control-allow-origin'),
  ).toBe(null)
})

test('what a foreign page embeds is refused without a key, following a link is not', async () => {
  const { port } = await open([guarded])
  const get = async (mode: string) =>
    (
      await raw(
        port,
        [
          `GET /api/secret HTTP/1.1`,
          `Host: localhost`,
          `Sec-Fetch-Site: cross-site`,
          `Sec-Fetch-Mode: ${mode}`,
          `Connection: close`,
          ``,
          ``,
        ].join('\r\n'),
      )
    ).status
  expect([await get('no-cors'), await get('navigate')]).toEqual([403, 200])
})

test('a local page may use the daemon while no key is set', async () => {
  const { url } = await open([{ ...guarded, method: 'POST' }])
  for (const origin of ['http://localhost:3000', 'http://127.0.0.1:8080', 'http://[::1]:8080', url]) {
    const answer = await fetch(`${url}/api/secret`, { method: 'POST', headers: { origin } })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, origin])
  }
  const flight = await fetch(`${url}/api/secret`, {
    method: 'OPTIONS',
    headers: {
      origin: 'http://localhost:3000',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-api-key',
    },
  })
  expect([
    flight.status,
    flight.headers.get('access-control-allow-methods'),
    flight.headers.get('access-control-allow-headers'),
  ]).toEqual([204, 'POST, OPTIONS', 'x-api-key'])
  expect(flight.headers.has('access-control-allow-credentials')).toBe(false)
})

test('with a key only configured origins are allowed, localhost is not', async () => {
  const { url } = await open([{ ...guarded, method: 'POST' }], {
    settings: { apiKey: 'k', allowedOrigins: ['https://app.example'] },
  })
  const post = async (origin: string) =>
    fetch(`${url}/api/secret`, { method: 'POST', headers: { origin, authorization: 'Bearer k' } })
  const fine = await post('https://app.example')
  expect([fine.status, fine.headers.get('access-control-allow-origin')]).toEqual([200, 'https://app.example'])
  for (const origin of ['http://localhost:3000', 'https://app.example.evil', 'http://app.example'])
    expect((await post(origin)).status).toBe(403)
})

test('error answers carry the CORS headers, so that a page can read them', async () => {
  const { url } = await open([ping])
  expect(
    (await fetch(`${url}/none`, { headers: { origin: 'http://localhost:3000' } })).headers.get(
      'access-control-allow-origin',
    ),
  ).toBe('http://localhost:3000')
})

test('loopback is told from names that only look like it', () => {
  for (const yes of ['localhost', 'a.localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]'])
    expect([yes, isLoopback(yes)]).toEqual([yes, true])
  for (const no of ['0.0.0.0', '::', '128.0.0.1', 'localhost.com', '127.0.0.1.nip.io', ''])
    expect([no, isLoopback(no)]).toEqual([no, false])
})
