import { expect, test, vi } from 'vitest'
import type { Server } from '@modelcontextprotocol/server'
import { BoundedEventStore } from '../../../plugins/mcp-server/http/event-store.ts'
import { SessionRegistry } from '../../../plugins/mcp-server/http/session.ts'
import type { Session } from '../../../plugins/mcp-server/http/session.ts'
import { SessionTransport } from '../../../plugins/mcp-server/http/transport.ts'

const limits = { max_events: 3, max_event_bytes: 1_000, event_secs: 10 }
const message = (method: string) => ({ jsonrpc: '2.0' as const, method })
async function replayed(store: BoundedEventStore, after: string): Promise<string[]> {
  const sent: string[] = []
  await store.replayEventsAfter(after, {
    async send(id) {
      sent.push(id)
    },
  })
  return sent
}

test('the store keeps max_events messages, max_event_bytes bytes, and each for event_secs', async () => {
  let now = 0
  const store = new BoundedEventStore(
    limits,
    () => now,
    (sent) => ('method' in sent ? Number(sent.method) : 0),
  )
  for (const size of ['1', '1', '1', '1']) await store.storeEvent('a', message(size))
  expect([store.size, await store.getStreamIdForEventId('1'), await replayed(store, '2')]).toEqual([
    3,
    undefined,
    ['3', '4'],
  ])
  await expect(replayed(store, '1')).rejects.toThrow('not kept any more')
  await store.storeEvent('b', message('999'))
  expect([store.size, await store.getStreamIdForEventId('5')]).toEqual([2, 'b'])
  now = 10_001
  expect(await store.getStreamIdForEventId('5')).toBeUndefined()
  for (const id of ['-1', '1e3', 'x', '', '99999999999999999999', '6'])
    expect(await store.getStreamIdForEventId(id)).toBeUndefined()
})

test('the registry ends sessions that are idle, and none that works', async () => {
  let now = 0
  const registry = new SessionRegistry({ max_sessions: 9, session_idle_secs: 60 }, () => now)
  const open = (id: string, running: number) => {
    const close = vi.fn(async () => undefined)
    const server = { close } as unknown as Server
    const session = {
      id,
      principal: { kind: 'operator' },
      server,
      client: { server, close: () => undefined },
      transport: { running, openStreams: 0 },
      lastUsedMs: now,
    }
    registry.add(session as unknown as Session)
    return close
  }
  const idle = open('idle', 0)
  const busy = open('busy', 1)
  now = 60_001
  await registry.sweep()
  expect([idle.mock.calls.length, busy.mock.calls.length, registry.size]).toEqual([1, 0, 1])
})

/** A transport after its handshake; `received` has what it gives to the server. */
async function openTransport(max_unread_bytes: number) {
  const options = {
    ...limits,
    max_events: 100,
    max_event_bytes: 100_000,
    max_unread_bytes,
    retry_ms: 1,
    max_body_bytes: 1_000,
  }
  const transport = new SessionTransport('session', options, () => 0)
  const received: unknown[] = []
  Object.assign(transport, { onmessage: (each: unknown) => void received.push(each) })
  await transport.start()
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
  await transport.handleRequest(web(), { parsedBody: { jsonrpc: '2.0', id: 0, method: 'initialize', params } })
  received.length = 0
  return { transport, received }
}
const web = (): Request =>
  new Request('http://localhost/mcp', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      'mcp-session-id': 'session',
    },
  })
const progress = (n: number) => ({
  jsonrpc: '2.0' as const,
  method: 'notifications/progress',
  params: { progressToken: 1, progress: n, message: 'x'.repeat(100) },
})
const request = { jsonrpc: '2.0' as const, id: 1, method: 'tools/call' }
const authInfo = { token: '', clientId: '', scopes: [] }

test('a stream that nobody reads is cut at max_unread_bytes, and goes on where it was', async () => {
  const { transport } = await openTransport(500)
  const answer = await transport.handleRequest(web(), { parsedBody: request })
  const reader = transport.metered(answer.body as ReadableStream<Uint8Array>, [1])[Symbol.asyncIterator]()
  await reader.next()
  for (let n = 0; n < 9; n++) await transport.send(progress(n), { relatedRequestId: 1 })
  let step = await reader.next()
  while (step.done !== true) step = await reader.next()
  expect(transport.openStreams).toBe(0)
  const again = await transport.handleRequest(
    new Request('http://localhost/mcp', {
      headers: { accept: 'text/event-stream', 'mcp-session-id': 'session', 'last-event-id': '2' },
    }),
  )
  await transport.send({ jsonrpc: '2.0', id: 1, result: {} })
  expect((await again.text()).match(/event: message/g)).toHaveLength(10)
})

test('what a request is told before its stream is open comes in order, and the request is given out once', async () => {
  const { transport, received } = await openTransport(10_000)
  const answer = transport.answer(request, authInfo)
  const sent = [
    transport.send(progress(0), { relatedRequestId: 1 }),
    transport.send(progress(1), { relatedRequestId: 1 }),
    transport.send({ jsonrpc: '2.0', id: 1, result: {} }),
  ]
  expect(await answer).toBeUndefined()
  const stream = await transport.stream(web(), request, authInfo)
  await Promise.all(sent)
  expect((await stream.text()).match(/(?<="progress":)\d|"result"/g)).toEqual(['0', '1', '"result"'])
  expect([received, transport.running]).toEqual([[request], 0])
})

test('a request that takes longer than a moment gets a stream, also one whose session ends meanwhile', async () => {
  const { transport } = await openTransport(10_000)
  const late = transport.answer(request, authInfo)
  expect(await late).toBeUndefined()
  const stream = await transport.stream(web(), request, authInfo)
  await transport.send({ jsonrpc: '2.0', id: 1, result: {} })
  expect(await stream.text()).toContain('"result"')
  const other = { ...request, id: 2 }
  const ended = transport.answer(other, authInfo)
  await transport.close()
  expect(await ended).toBeUndefined()
  expect((await transport.stream(web(), other, authInfo)).status).toBe(404)
})

test('whoever has most sessions makes room for the others, and is kept out itself', async () => {
  const registry = new SessionRegistry({ max_sessions: 3, session_idle_secs: 60 }, () => 0)
  const ended: string[] = []
  const open = (id: string, principal: object, running = 0): void => {
    const server = { close: async () => void ended.push(id) } as unknown as Server
    const client = { server, close: () => undefined }
    const transport = { running, openStreams: 1 }
    registry.add({ id, principal, server, client, transport, lastUsedMs: 0 } as unknown as Session)
  }
  const [phone, operator] = [{ kind: 'device', id: 'phone' }, { kind: 'operator' }] as unknown as Session['principal'][]
  open('works', phone!, 1)
  open('listens', phone!)
  open('own', operator!)
  expect([await registry.makeRoom(phone!), ended]).toEqual([false, []])
  expect([await registry.makeRoom(operator!), ended]).toEqual([true, ['listens']])
})
