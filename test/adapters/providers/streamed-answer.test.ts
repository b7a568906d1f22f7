import { describe, expect, it } from 'vitest'
import { readStreamed } from 'svc/providers'
import type { StreamDecoder } from 'svc/providers'
import { UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'

/** One event for each character; `.` is the last one. */
class Letters implements StreamDecoder<string> {
  done = false
  readonly #fails: boolean
  constructor(fails = false) {
    this.#fails = fails
  }
  feed(bytes: Uint8Array): readonly string[] {
    const letters = new TextDecoder().decode(bytes)
    this.done ||= letters.includes('.')
    return [...letters.replace('.', '')]
  }
  finish(): readonly string[] {
    if (this.#fails) throw new UpstreamFailure('x', 'x said nothing', { reason: 'malformed', retry: 'later' })
    return ['end']
  }
}
function answer(chunks: () => AsyncIterable<Uint8Array>, type = 'text/event-stream'): OutboundResponse {
  const unread = (): never => {
    throw new Error('read in another way')
  }
  return {
    status: 200,
    ok: true,
    url: 'http://x/',
    header: (name) => (name === 'content-type' ? type : undefined),
    chunks,
    text: unread,
    json: unread,
    bytes: unread,
    toResponse: unread,
  }
}
async function* pieces(...texts: readonly (string | Error)[]): AsyncIterable<Uint8Array> {
  for (const text of texts) {
    if (typeof text !== 'string') throw text
    yield new TextEncoder().encode(text)
  }
}
async function read(
  response: OutboundResponse,
  decoder: StreamDecoder<string> = new Letters(),
  signal = new AbortController().signal,
): Promise<string> {
  const events: string[] = []
  for await (const event of readStreamed('x', decoder, signal, async () => response)) events.push(event)
  return events.join(' ')
}

describe('an answer that is streamed', () => {
  it('is read to its end, although its last event came earlier', async () => {
    let isRead = false
    expect(
      await read(
        answer(async function* () {
          yield* pieces('ab', 'c.', 'd')
          isRead = true
        }),
      ),
    ).toBe('a b c end')
    expect(isRead).toBe(true)
  })
  it('is whole after its last event, however its connection ends', async () => {
    expect(await read(answer(() => pieces('a.', new Error('reset'))))).toBe('a end')
    await expect(read(answer(() => pieces('a', new Error('reset'))))).rejects.toThrow('reset')
  })
  it('fails when its end marker ends nothing', async () => {
    await expect(
      read(
        answer(() => pieces('.')),
        new Letters(true),
      ),
    ).rejects.toMatchObject({ reason: 'malformed' })
  })
  it('is refused when it is a web page, whose connection is closed', async () => {
    let left = false
    const page = answer(async function* () {
      try {
        yield* pieces('<html>', 'x')
      } finally {
        left = true
      }
    }, 'text/html; charset=utf-8')
    await expect(read(page)).rejects.toMatchObject({ reason: 'malformed', retry: 'never' })
    expect(left).toBe(true)
  })
  it('ends with the reason of the abort, whatever its connection says of it', async () => {
    const abort = new AbortController()
    const response = answer(async function* () {
      yield* pieces('a')
      abort.abort(new Error('enough'))
      throw new Error('reset')
    })
    await expect(read(response, new Letters(), abort.signal)).rejects.toThrow('enough')
  })
})
