import { describe, expect, it } from 'vitest'
import { UpstreamFailure } from 'svc/sdk'
import { StreamedMessage } from '../../../plugins/channels/text/index.ts'

/** A platform that shows messages of five characters, and a clock that is moved by hand. */
function stage(minIntervalMs = 1000) {
  const shown: string[] = []
  const calls: string[] = []
  const failures: Error[] = []
  const sleepers: { readonly ms: number; readonly wake: () => void }[] = []
  let arrived = Promise.withResolvers<void>()
  const stream = new StreamedMessage({
    minIntervalMs,
    render: (text) => (text.match(/.{1,30}/g) ?? []).map((part) => ({ text: part, plainText: part })),
    async send(message, part) {
      calls.push(`send ${part}`)
      const failure = failures.shift()
      if (failure) throw failure
      shown[part] = message.text
      return { id: `m${part}` }
    },
    async edit(sent, message, part) {
      calls.push(`edit ${sent.id}`)
      const failure = failures.shift()
      if (failure) throw failure
      shown[part] = message.text
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
        sleepers.push({ ms, wake: resolve })
        arrived.resolve()
      }),
  })
  return {
    stream,
    shown,
    calls,
    failures,
    /** Waits until the stream pauses, and tells for how long. */
    async pause(): Promise<number> {
      await arrived.promise
      return sleepers.at(-1)?.ms ?? 0
    },
    wake(): void {
      arrived = Promise.withResolvers()
      sleepers.pop()?.wake()
    },
  }
}

describe('an answer that is shown while it is written', () => {
  it('shows the newest text, not every text, and no more often than allowed', async () => {
    const { stream, shown, calls, pause, wake } = stage()
    for (const text of ['a'.repeat(24), 'b'.repeat(25), 'c'.repeat(26)]) stream.update(text)
    expect(await pause()).toBe(1000)
    for (const text of ['d'.repeat(27), 'e'.repeat(28)]) stream.update(text)
    wake()
    await pause()
    expect(shown).toEqual(['e'.repeat(28)])
    expect(calls).toEqual(['send 0', 'edit m0'])
    wake()
    await pause()
    expect(calls).toHaveLength(2)
    expect(await stream.stop()).toEqual([{ sent: { id: 'm0' }, text: 'e'.repeat(28) }])
  })

  it('goes on in a next message beyond the limit', async () => {
    const { stream, shown, calls, pause } = stage()
    stream.update('x'.repeat(65))
    await pause()
    expect(shown.map(({ length }) => length)).toEqual([30, 30, 5])
    expect(calls).toEqual(['send 0', 'send 1', 'send 2'])
    await stream.stop()
  })

  it('shows nothing of a short answer', async () => {
    const { stream, calls } = stage()
    stream.update('Yes.')
    expect(await stream.stop()).toEqual([])
    expect(calls).toEqual([])
  })

  it('waits as long as the platform asks, then shows the newest text', async () => {
    const { stream, shown, failures, pause, wake } = stage()
    failures.push(new UpstreamFailure('x', 'slow down', { reason: 'rate_limit', retry: 'later', retryAfterSecs: 7 }))
    stream.update('a'.repeat(30))
    expect(await pause()).toBe(7000)
    stream.update('b'.repeat(30))
    wake()
    await pause()
    expect(shown).toEqual(['b'.repeat(30)])
    await stream.stop()
  })

  it.each([
    ['what will fail again', { reason: 'invalid_request', retry: 'never' }],
    ['a pause that is too long', { reason: 'rate_limit', retry: 'later', retryAfterSecs: 300 }],
  ] as const)('ends the stream without an error after %s', async (_, options) => {
    const { stream, calls, failures, pause, wake } = stage()
    stream.update('a'.repeat(30))
    await pause()
    failures.push(new UpstreamFailure('x', 'no', options))
    stream.update('b'.repeat(30))
    wake()
    stream.update('c'.repeat(30))
    expect(await stream.stop()).toEqual([{ sent: { id: 'm0' }, text: 'a'.repeat(30) }])
    expect(calls.length).toBeLessThanOrEqual(2)
  })

  it('can be stopped at any time and does nothing more', async () => {
    const { stream, calls, pause } = stage()
    stream.update('a'.repeat(30))
    await pause()
    await stream.stop()
    stream.update('b'.repeat(30))
    expect(calls).toEqual(['send 0'])
  })
})
