import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import * as v from 'valibot'
import type { Holder } from '../../../core/auth/principal.ts'
import type { HttpSettings } from '../../../core/http/settings.ts'
import { defineRoute, defineSocket } from '../../../core/http/route.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { guarded, open, ping } from '../http/harness.ts'
import type { Opened } from '../http/harness.ts'

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
const ada: Holder = { kind: 'user', name: 'Ada', id: 'u1' }
const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
const who = async (opened: Opened, text: string) => {
  const answer = await fetch(`${opened.url}/api/secret`, { headers: bearer(text) })
  return answer.status === 200 ? ((await answer.json()) as { who: string }).who : answer.status
}
const socket = defineSocket({
  path: '/api/live',
  summary: 'Live',
  auth: 'bearer',
  cost: 1,
  effect: 'conversation',
  frameCost: 1,
  accept: () => ({}),
  open: (live) => {
    live.send(live.principal.kind)
  },
  frame() {},
})
const stream = defineRoute({
  method: 'GET',
  path: '/api/events',
  summary: 'Events',
  auth: 'bearer',
  effect: 'read',
  cost: 1,
  returns: v.unknown(),
  async *handle({ signal }) {
    yield { data: '1' }
    await once(signal, 'abort')
  },
})

/** A server with a key and a plugin that accepts the credentials in `known`. */
async function accepting(known: Map<string, Holder>, settings: Partial<HttpSettings> = { apiKey: 'key' }) {
  const opened = await open([guarded, ping, stream], { sockets: [socket], settings })
  const scope = new Scope('sso')
  const credentials = opened.http.credentials(scope)
  const source = { name: 'sso', find: (one: string) => known.get(one) }
  return { opened, scope, credentials, accepted: credentials.accept(source), source }
}

test('a credential of a plugin opens what the key opens, found by its digest alone', async () => {
  const asked: string[] = []
  const { opened, credentials } = await accepting(new Map([[digest('session'), ada]]))
  credentials.accept({
    name: 'other',
    find: (one) => {
      asked.push(one)
      return undefined
    },
  })
  expect([await who(opened, 'session'), await who(opened, 'key'), await who(opened, digest('session'))]).toEqual([
    'user',
    'operator',
    401,
  ])
  expect(asked).toEqual([digest(digest('session'))])
})

test('without a key further credentials change nothing', async () => {
  const { opened } = await accepting(new Map([[digest('session'), ada]]), {})
  expect([await who(opened, 'session'), await who(opened, 'nonsense')]).toEqual(['anonymous', 'anonymous'])
})

test('wrong credentials of every kind fill one bucket, and a full one lets none be looked up', async () => {
  const { opened, credentials } = await accepting(new Map([[digest('session'), ada]]), {
    apiKey: 'key',
    failedAuthPerMinute: 2,
  })
  expect(await who(opened, 'guess')).toBe(401)
  credentials.checkAttempts('127.0.0.1')
  credentials.failed({ clientAddress: '127.0.0.1', method: 'POST', path: '/api/pairing/complete', requestId: 'r' })
  expect(opened.failures).toMatchObject([{ path: '/api/secret' }, { path: '/api/pairing/complete' }])
  expect([await who(opened, 'session'), await who(opened, 'key')]).toEqual([429, 429])
  expect(() => credentials.checkAttempts('127.0.0.1')).toThrow('Too many failed')
  expect(() => credentials.checkAttempts('192.0.2.1')).not.toThrow()
})

test("sockets, streams and tickets of a credential end when it is revoked, and nobody else's", async () => {
  const known = new Map([
    [digest('session'), ada],
    [digest('other'), { ...ada, id: 'u2' }],
  ])
  const { opened, accepted } = await accepting(known)
  const ticketOf = async (text: string) =>
    (
      (await (await fetch(`${opened.url}/api/auth/ws-ticket`, { method: 'POST', headers: bearer(text) })).json()) as {
        protocol: string
      }
    ).protocol
  const live = async (protocol: string) => {
    const client = new WebSocket(`${opened.wsUrl}/api/live`, ['svc', protocol])
    client.addEventListener('error', () => {})
    const closed = once(client, 'close') as Promise<[CloseEvent]>
    const first = (await Promise.race([once(client, 'message'), closed])) as [MessageEvent | CloseEvent]
    return { client, closed, said: 'data' in first[0] ? (first[0].data as string) : undefined }
  }
  const mine = await live(await ticketOf('session'))
  const theirs = await live(await ticketOf('other'))
  expect([mine.said, theirs.said]).toEqual(['user', 'user'])
  const unused = await ticketOf('session')
  const answer = await fetch(`${opened.url}/api/events`, { headers: bearer('session') })
  known.delete(digest('session'))
  accepted.revoked()
  expect((await mine.closed)[0]).toMatchObject({ code: 1008, reason: 'unauthorized' })
  await expect(answer.text()).rejects.toThrow()
  expect((await live(unused)).said).toBeUndefined()
  expect(await who(opened, 'session')).toBe(401)
  expect(theirs.client.readyState).toBe(WebSocket.OPEN)
  theirs.client.close()
})

test('what a plugin accepted ends with it, except for the moment it is reloaded in', async () => {
  const { opened, scope, source } = await accepting(new Map([[digest('session'), ada]]))
  expect(() => opened.http.credentials(new Scope('twin')).accept(source)).toThrow('accepted by plugin "sso"')
  const answer = await fetch(`${opened.url}/api/events`, { headers: bearer('session') })
  const reader = answer.body?.getReader()
  await reader?.read()
  const ended = reader?.read().then(
    () => 'read',
    () => 'cut',
  )
  const release = opened.http.hold(['sso'])
  await scope.close(0)
  expect(await who(opened, 'session')).toBe('user')
  const next = new Scope('sso')
  opened.http.credentials(next).accept(source)
  release()
  expect(await who(opened, 'session')).toBe('user')
  expect(await Promise.race([ended, who(opened, 'session')])).toBe('user')
  await next.close(0)
  expect(await ended).toBe('cut')
  expect(await who(opened, 'session')).toBe(401)
})

test('what a route leaves behind decides who may call it; one that does not say is for the key', async () => {
  const phone: Holder = { kind: 'device', name: 'phone', id: 'd1' }
  const route = (path: `/${string}`, effect?: unknown) =>
    // As a plugin that was written without types has it.
    ({ ...ping, path, auth: 'bearer', ...(effect === undefined ? { effect: undefined } : { effect }) }) as typeof ping
  const opened = await open(
    [guarded, route('/api/chat', 'conversation'), route('/api/settings', 'lasting'), route('/api/undeclared')],
    { sockets: [{ ...socket, effect: undefined as never }], settings: { apiKey: 'key' } },
  )
  opened.http.credentials(new Scope('pairing')).accept({
    name: 'pairing',
    find: (one) => (one === digest('phone') ? phone : undefined),
  })
  const status = async (path: string, key: string) => (await fetch(opened.url + path, { headers: bearer(key) })).status
  expect(
    await Promise.all(['/api/chat', '/api/settings', '/api/undeclared'].map((path) => status(path, 'phone'))),
  ).toEqual([200, 403, 403])
  expect(
    await Promise.all(['/api/chat', '/api/settings', '/api/undeclared'].map((path) => status(path, 'key'))),
  ).toEqual([200, 200, 200])
  const { ticket } = (await (
    await fetch(`${opened.url}/api/auth/ws-ticket`, { method: 'POST', headers: bearer('phone') })
  ).json()) as { ticket: string }
  const refused = new WebSocket(`${opened.url.replace('http', 'ws')}/api/live`, ['svc', `svc.ticket.${ticket}`])
  const [event] = await once(refused, 'close')
  expect((event as CloseEvent).wasClean).toBe(false)
  await expect(open([route('/api/odd', 'harmless')])).rejects.toThrow(
    /"harmless"; there are read, conversation, own, lasting/,
  )
})
