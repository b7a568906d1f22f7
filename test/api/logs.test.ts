import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LogFeed } from '../../core/log/feed.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

interface Line {
  readonly seq: number
  readonly level: string
  readonly message: string
  readonly detail: string
  readonly timestamp: string
  readonly missed?: number
}
let host: TestHost
beforeAll(async () => {
  host = await startHost({
    plugins: ['audit', 'system', 'agents', 'kv', 'plugin-admin'],
    config: { api_key: 'key-of-the-log' },
  })
})
afterAll(() => host[Symbol.asyncDispose]())
const authorization = 'Bearer key-of-the-log'

/** The lines of a stream one after the other, until the reader leaves. */
async function* read(query = ''): AsyncGenerator<Line> {
  const controller = new AbortController()
  const response = await host.fetch(`/api/logs/stream${query}`, {
    headers: { authorization },
    signal: controller.signal,
  })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  let rest = ''
  try {
    for await (const chunk of response.body ?? []) {
      rest += Buffer.from(chunk).toString()
      for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
        const event = rest.slice(0, end)
        rest = rest.slice(end + 2)
        if (event.startsWith('data: ')) yield JSON.parse(event.slice(6))
      }
    }
  } finally {
    controller.abort()
  }
}
describe('GET /api/logs/stream', () => {
  it('gives the last lines and then each that is written', async () => {
    const reload = () => host.json('POST', '/api/plugins/kv/reload', undefined, { authorization })
    await reload()
    const lines = read('?level=debug')
    const first = (await lines.next()).value as Line
    expect(first.timestamp).toMatch(/^\d{4}-\d\d-\d\dT/)
    expect(first.detail).toBe(first.message)
    expect((await reload()).status).toBe(200)
    let last = first
    for await (const line of lines) {
      expect(line.seq).toBeGreaterThan(last.seq)
      last = line
      if (line.seq > first.seq && /"kv" was away/.test(line.message)) break
    }
    expect(last).toMatchObject({ level: 'debug', message: expect.stringContaining('plugin "kv" was away for') })
  })

  it('leaves out what is less important, or has not the text', async () => {
    await host.json('POST', '/api/plugins/kv/reload', undefined, { authorization })
    const lines = read('?level=debug&filter=KV%22%20WAS')
    expect((await lines.next()).value).toMatchObject({ message: expect.stringContaining('"kv" was away') })
    await lines.return(undefined)
    // Nothing of that importance was written: what comes first is what this line leads to.
    const errors = read('?level=error&tail=500')
    host.app.defect(new Error('a defect of the test'), 'the test')
    // A busy machine may have errors of its own.
    for await (const line of errors) {
      expect(line['level']).toBe('error')
      if (String(line['message']).includes('the test')) break
    }
    expect(host.defects()).toHaveLength(1)
  })

  it.each(['level=loud', 'tail=-1', 'tail=501', 'tail=x', `filter=${'x'.repeat(300)}`])('refuses %s', async (query) => {
    expect((await host.fetch(`/api/logs/stream?${query}`, { headers: { authorization } })).status).toBe(400)
  })

  it('needs the key, and ends when its plugin goes', async () => {
    expect((await host.fetch('/api/logs/stream')).status).toBe(401)
    const lines = read('?level=trace')
    // Open by then: one that is opened after the reload goes on.
    await lines.next()
    const ended = (async () => {
      for await (const _ of lines);
      return 'ended'
    })()
    await host.json('POST', '/api/plugins/system/reload', undefined, { authorization })
    expect(await ended).toBe('ended')
  })
})

describe('the feed of the log', () => {
  it('remembers so many lines and numbers them', () => {
    const feed = new LogFeed(3)
    for (let n = 0; n < 20; n++)
      feed.push({
        time: new Date(),
        level: 'info',
        type: 'info',
        tag: '',
        message: String(n),
        fields: undefined,
        errors: [],
      })
    expect(feed.recent(10).map(({ seq, line }) => [seq, line.message])).toEqual([
      [18, '17'],
      [19, '18'],
      [20, '19'],
    ])
    expect(feed.recent(0)).toEqual([])
  })
})
