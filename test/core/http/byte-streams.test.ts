import { expect, test } from 'vitest'
import * as v from 'valibot'
import { defineRoute, reply } from '../../../core/http/route.ts'
import type { ByteStream, Reply, RouteInput } from '../../../core/http/route.ts'
import { eventually } from '../../support/eventually.ts'
import { missingHeaders, open } from './harness.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const route = (
  handle: (input: RouteInput<unknown, unknown, unknown>) => Reply,
  more: { feed?: true; auth?: 'bearer' } = {},
) =>
  defineRoute({
    method: 'GET',
    path: '/api/bytes',
    summary: 'Bytes',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    produces: 'text/plain',
    ...more,
    handle: handle as never,
  })
const plain = (body: ByteStream): Reply => reply(body, { 'content-type': 'text/plain' })
/** Never ends by itself; `returned` resolves when its reader has left. */
function endless() {
  const returned = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      yield bytes('first')
      await ended.promise
    } finally {
      returned.resolve()
    }
  }
  const iterator = source()
  const body: ByteStream = {
    [Symbol.asyncIterator]: () => ({
      next: () => iterator.next(),
      return: async () => {
        ended.resolve()
        return iterator.return(undefined)
      },
    }),
  }
  return { body, returned: returned.promise }
}

test('bytes are sent as they come, with the headers of every answer', async () => {
  const next = Promise.withResolvers<void>()
  const { url } = await open([
    route(() =>
      plain(
        (async function* () {
          yield bytes('one ')
          await next.promise
          yield bytes('two')
        })(),
      ),
    ),
  ])
  const answer = await fetch(`${url}/api/bytes`)
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('one ')
  next.resolve()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('two')
  expect((await reader.read()).done).toBe(true)
  expect([missingHeaders(answer.headers), answer.headers.get('content-type')]).toEqual([[], 'text/plain'])
})

test('the source is pulled only as fast as the client reads', async () => {
  let pulled = 0
  const source = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled++
      controller.enqueue(new Uint8Array(65_536))
      if (pulled === 400) controller.close()
    },
  })
  const { url } = await open([route(() => plain(source as ReadableStream<Uint8Array> & ByteStream))])
  const answer = await fetch(`${url}/api/bytes`)
  await eventually(() => expect(pulled).toBeGreaterThan(2))
  // Nobody reads yet: what the socket and the client buffer is a part of all of it.
  await new Promise((resolve) => setImmediate(resolve))
  expect(pulled).toBeLessThan(400)
  expect((await answer.arrayBuffer()).byteLength).toBe(400 * 65_536)
})

test('a client that leaves ends the source and aborts the signal', async () => {
  const { body, returned } = endless()
  const aborted = Promise.withResolvers<void>()
  const { url, scope } = await open([
    route(({ signal }) => {
      signal.addEventListener('abort', () => aborted.resolve())
      return plain(body)
    }),
  ])
  const leave = new AbortController()
  const answer = await fetch(`${url}/api/bytes`, { signal: leave.signal })
  expect(answer.status).toBe(200)
  leave.abort()
  await Promise.all([returned, aborted.promise])
  // Unloading waits for nobody.
  await scope.close(60_000)
})

test('a source that fails breaks the connection, so that nobody takes the answer for complete', async () => {
  const { url, defects } = await open([
    route(() =>
      plain(
        (async function* () {
          yield bytes('half')
          throw new Error('the disk is gone')
        })(),
      ),
    ),
  ])
  await expect(fetch(`${url}/api/bytes`).then((answer) => answer.text())).rejects.toThrow()
  await eventually(() => expect(defects).toHaveLength(1))
})

test('unloading ends a feed without waiting for it', async () => {
  const { body, returned } = endless()
  const { url, scope } = await open([route(() => plain(body), { feed: true })])
  const answer = await fetch(`${url}/api/bytes`)
  await scope.close(60_000)
  await returned
  expect(await answer.text()).toBe('first')
})

test('a HEAD request gets the head only, and the source is told that nobody reads', async () => {
  const returned = Promise.withResolvers<void>()
  const body: ByteStream = {
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.reject(new Error('nobody reads')),
      return: async () => {
        returned.resolve()
        return { done: true, value: undefined }
      },
    }),
  }
  const { url } = await open([route(() => plain(body))])
  expect((await fetch(`${url}/api/bytes`, { method: 'HEAD' })).status).toBe(200)
  await returned.promise
})
