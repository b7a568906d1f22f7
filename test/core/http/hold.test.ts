import { connect } from 'node:net'
import { expect, test } from 'vitest'
import * as v from 'valibot'
import { defineRoute } from '../../../core/http/route.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { guarded, open, ping } from './harness.ts'

const version = (n: number, path: `/${string}` = '/api/v/:id') =>
  defineRoute({
    method: 'GET',
    path,
    summary: 'V',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    handle: ({ params }) => ({ n, params }),
  })

test('a request for a held plugin waits and is answered by the new code', async () => {
  const { http, url, scope } = await open([version(1)])
  const release = http.hold(['plugin'])
  const waiting = fetch(`${url}/api/v/x`)
  await scope.close(100)
  const later = fetch(`${url}/api/v/y`)
  const next = new Scope('plugin')
  http.forPlugin(next).add(version(2, '/api/v/:name'))
  release()
  release()
  expect([await (await waiting).json(), await (await later).json()]).toEqual([
    { n: 2, params: { name: 'x' } },
    { n: 2, params: { name: 'y' } },
  ])
})

test('other plugins answer meanwhile', async () => {
  const { http, url } = await open([version(1)])
  const other = new Scope('other')
  http.forPlugin(other).add(ping)
  const release = http.hold(['plugin'])
  expect((await fetch(`${url}/api/ping`)).status).toBe(200)
  release()
})

test('a path the new code no longer has is 404 after the wait', async () => {
  const { http, url, scope } = await open([version(1)])
  const release = http.hold(['plugin'])
  await scope.close(100)
  const waiting = fetch(`${url}/api/v/x`)
  setImmediate(release)
  expect((await waiting).status).toBe(404)
  expect((await fetch(`${url}/api/v/x`)).status).toBe(404)
})

test('a wait that takes too long is 503 with Retry-After', async () => {
  const { http, url } = await open([version(1)], { settings: { holdMaxMs: 20 } })
  const release = http.hold(['plugin'])
  const answer = await fetch(`${url}/api/v/x`)
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
  release()
  expect((await fetch(`${url}/api/v/x`)).status).toBe(200)
})

test('more requests than may wait are 503 at once, and one that leaves makes room', async () => {
  const { http, url, port } = await open([version(1)], { settings: { holdMaxRequests: 1 } })
  const release = http.hold(['plugin'])
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /api/v/x HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await expect
    .poll(
      async () =>
        (await fetch(`${url}/api/v/y`, { signal: AbortSignal.timeout(200) }).catch(() => ({ status: 0 }))).status,
    )
    .toBe(503)
  socket.destroy()
  const waiting = (async () => {
    for (;;) {
      const answer = await fetch(`${url}/api/v/z`)
      if (answer.status !== 503) return answer.status
    }
  })()
  setTimeout(release, 50)
  expect(await waiting).toBe(200)
})

test('a caller without the key does not get to wait, and the new route asks again', async () => {
  const { http, url, scope } = await open([guarded], { settings: { apiKey: 'k' } })
  const release = http.hold(['plugin'])
  expect((await fetch(`${url}/api/secret`)).status).toBe(401)
  release()
  await scope.close(10)
  const first = new Scope('plugin')
  http.forPlugin(first).add({ ...guarded, auth: 'public' })
  const again = http.hold(['plugin'])
  const waiting = fetch(`${url}/api/secret`)
  await first.close(10)
  http.forPlugin(new Scope('plugin')).add(guarded)
  setTimeout(again, 20)
  expect((await waiting).status).toBe(401)
})

test('two holds of one plugin end with the second release', async () => {
  const { http, url } = await open([version(1)])
  const one = http.hold(['plugin'])
  const two = http.hold(['plugin'])
  one()
  let answered = false
  const waiting = fetch(`${url}/api/v/x`).then((answer) => {
    answered = true
    return answer.status
  })
  await fetch(`${url}/api/none`)
  expect(answered).toBe(false)
  two()
  expect(await waiting).toBe(200)
})
