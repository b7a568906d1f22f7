import { describe, expect, it } from 'vitest'
import { Bridge } from '../../../core/host/isolation/bridge.ts'
import type { Context } from '../../../core/host/isolation/bridge.ts'
import { Peer } from '../../../core/host/isolation/peer.ts'
import { decode, encode } from '../../../core/host/isolation/wire.ts'

const noStream = (): never => {
  throw new Error('no stream is expected')
}
const crossed = (value: unknown): unknown => decode(JSON.parse(JSON.stringify(encode(value, noStream))), noStream)

class Described {
  readonly name = 'it'
  get input(): object {
    return { type: 'object' }
  }
}

describe('what crosses to the process of a plugin', () => {
  it.each([
    ['bytes and large integers', { a: new Uint8Array([0, 255]), b: 3n ** 40n, c: [undefined, null] }],
    ['data that looks like an encoded value', { '~type': 'bytes', value: 'AAAA' }],
    ['data that looks like a stream', { list: [{ '~type': 'stream', value: 1 }] }],
  ])('arrives as it was: %s', (_, value) => {
    expect(crossed(value)).toEqual(value)
  })

  it('has what a class computes, and no functions', () => {
    expect(crossed({ tool: new Described(), run: () => 1 })).toEqual({
      tool: { name: 'it', input: { type: 'object' } },
    })
  })

  it('sets no prototype', () => {
    const found = decode(
      JSON.parse('{"__proto__": {"isAdmin": true}, "a": {"__proto__": {"isAdmin": true}}}'),
      noStream,
    )
    expect(Object.assign({}, found, (found as { a: object }).a)).not.toHaveProperty('isAdmin')
    expect({}).not.toHaveProperty('isAdmin')
  })
})

describe('an end of the channel', () => {
  function pair() {
    const there: Peer = new Peer(
      (message) => queueMicrotask(() => here.receive(JSON.parse(JSON.stringify(message)))),
      async (method, input, signal) => {
        if (method === 'count')
          return (async function* () {
            for (let n = 0; n < Number(input); n++) {
              signal.throwIfAborted()
              yield n
            }
          })()
        if (method === 'wait') await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return input
      },
    )
    const here: Peer = new Peer(
      (message) => queueMicrotask(() => there.receive(JSON.parse(JSON.stringify(message)))),
      noStream,
    )
    return { here, there }
  }

  it('reads a stream to its end, and leaves it', async () => {
    const { here } = pair()
    expect(await Array.fromAsync((await here.call('count', 3)) as AsyncIterable<unknown>)).toEqual([0, 1, 2])
    for await (const n of (await here.call('count', 1000)) as AsyncIterable<unknown>) if (n === 1) break
    const { signal } = new AbortController()
    expect(await here.call('echo', { a: 1 }, signal)).toEqual({ a: 1 })
  })

  it('aborts a stream by the signal of its call', async () => {
    const { here } = pair()
    const controller = new AbortController()
    const stream = (await here.call('count', 1000, controller.signal)) as AsyncIterable<unknown>
    const read = Array.fromAsync(stream)
    controller.abort(new Error('enough'))
    await expect(read).rejects.toThrow('enough')
  })

  it.each([
    ['an answer nobody asked for', { answer: 99, value: 1 }],
    ['an answer to its own calls', { answer: 1, error: 'forged' }],
    ['no object', 'text'],
    ['an abort of nothing', { abort: 7 }],
    ['a call without a method', { id: 1 }],
    ['a stream nobody opened', { id: 2, method: '~next', input: 99 }],
  ])('is not disturbed by %s', async (_, message) => {
    const { here, there } = pair()
    there.receive(message)
    expect(await here.call('echo', 'still here')).toBe('still here')
  })

  it('takes no more than its limit of calls, and ends all when it closes', async () => {
    const { here, there } = pair()
    const calls = Array.from({ length: 1100 }, () => here.call('wait', 1))
    const settled = Promise.allSettled(calls)
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    here.close(new Error('closed'))
    there.close(new Error('closed'))
    const reasons = (await settled).map((one) => (one.status === 'rejected' ? String(one.reason) : one.status))
    expect(reasons.filter((one) => one.includes('More than 1024 calls'))).toHaveLength(1100 - 1024)
    expect(reasons.filter((one) => one.includes('closed'))).toHaveLength(1024)
    await expect(here.call('echo', 1)).rejects.toThrow('closed')
  })
  it('counts calls with the id of a running one, too', async () => {
    const { here, there } = pair()
    const waiting = here.call('wait', 1)
    const forged = here.call('echo', 2)
    // The second call, sent with the id of the first.
    there.receive({ id: 1, method: 'echo', input: 'forged' })
    await expect(waiting).rejects.toThrow('is running already')
    expect(await forged).toBe(2)
    here.close(new Error('closed'))
    there.close(new Error('closed'))
  })
})

it('what a process registers is limited in number and in size', async () => {
  const registered: string[] = []
  const metrics = { counter: (name: string) => void registered.push(name) }
  const bridge = new Bridge({ metrics } as unknown as Context, { call: () => Promise.resolve(), hookMs: () => 1 })
  const register = (name: string, help: string) => {
    const input = { kind: 'metric', key: `metric ${name}`, type: 'counter', name, help }
    return bridge.handle('register', input, new AbortController().signal)
  }
  await expect(register('svc_long_total', 'x'.repeat(100_000))).rejects.toThrow('more than 65536')
  for (let at = 0; at < 1000; at++) await register(`svc_a${at}_total`, 'A.')
  await expect(register('svc_one_total', 'A.')).rejects.toThrow('More than 1000')
  // A process that was started again registers the same once more.
  await register('svc_a0_total', 'A.')
  expect(registered).toHaveLength(1000)
})
