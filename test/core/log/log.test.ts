import { describe, expect, it } from 'vitest'
import { createLog } from '../../../core/log/log.ts'
import type { Log, LogOptions } from '../../../core/log/log.ts'

function capture(options: LogOptions = {}): {
  log: Log
  lines: string[]
  last: () => string
  json: () => Record<string, unknown>
} {
  const lines: string[] = []
  const log = createLog({
    colored: false,
    write: (line) => {
      lines.push(line)
    },
    ...options,
  })
  const last = (): string => lines.at(-1) ?? ''
  return { log, lines, last, json: () => JSON.parse(last()) as Record<string, unknown> }
}
const withoutTime = (line: string): string => line.replace(/^\d\d:\d\d:\d\d\.\d{3} /, '')

describe('text', () => {
  it('has time, level, tag, message and fields in one line', () => {
    const { log, last } = capture()
    log.withTag('chat').info('turn ended', { tokens: 5, agent: 'my agent', ok: true, list: [1, 'a b'] })
    expect(last()).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} info  \[chat\] turn ended tokens=5 agent="my agent" ok=true list=\[1,"a b"\]\n$/,
    )
  })
  it('prints the stack of an error at level error only', () => {
    const { log, last } = capture()
    log.warn('slow', new Error('because'))
    expect(withoutTime(last())).toBe('warn  slow because\n')
    log.error('broke', new TypeError('because', { cause: new Error('root') }))
    expect(withoutTime(last())).toMatch(
      /^error broke TypeError: because\n {4}TypeError: because\n {8}at .*log\.test\.ts[^]*caused by Error: root\n/,
    )
  })
  it('prints the stack of an error among the fields the same way', () => {
    const { log, last } = capture()
    log.error('request failed', { where: 'GET /', error: new TypeError('because') })
    expect(withoutTime(last())).toMatch(
      /^error request failed where="GET \/" error="TypeError: because"\n {4}TypeError: because\n {8}at .*log\.test\.ts/,
    )
    log.warn('slow', { error: new TypeError('because') })
    expect(withoutTime(last())).toContain('because')
  })
  it('prints the parts of an aggregate', () => {
    const { log, last } = capture()
    log.error(new AggregateError([new Error('one'), new Error('two')], 'both'))
    expect(last()).toMatch(/AggregateError: both[^]*- Error: one[^]*- Error: two/)
  })
  it('colours on request', () => {
    const { log, last } = capture({ colored: true })
    log.error('x')
    expect(last()).toContain('\u001b[31merror\u001b[0m')
  })
})

describe('json', () => {
  it('is one object a line', () => {
    const { log, last, json } = capture({ format: 'json' })
    log.withTag('http').warn('slow\nanswer', {
      ms: 5,
      at: new Date(0),
      of: new Map([['a', new Set([1n])]]),
      fn: () => 1,
      none: undefined,
    })
    expect(last().split('\n')).toHaveLength(2)
    expect(json()).toEqual({
      time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      level: 'warn',
      tag: 'http',
      msg: 'slow\nanswer',
      fields: { ms: 5, at: '1970-01-01T00:00:00.000Z', of: { a: ['1'] }, fn: '[function]' },
    })
  })
  it('holds errors with their stack at level error', () => {
    const { log, json } = capture({ format: 'json' })
    log.error('broke', Object.assign(new Error('because'), { code: 'E_X' }))
    expect(json()['errors']).toEqual([
      expect.objectContaining({
        name: 'Error',
        message: 'because',
        code: 'E_X',
        stack: expect.stringContaining('log.test.ts') as string,
      }),
    ])
  })
  it('survives circles and depth', () => {
    const { log, json } = capture({ format: 'json' })
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    log.info('x', { circle, deep: { a: { b: { c: { d: { e: { f: 1 } } } } } } })
    expect(JSON.stringify(json()['fields'])).toMatch(/\[circular\].*\[deep\]/)
  })
  it('stays valid JSON and bounded when a message or its fields are huge', () => {
    const { log, last, json } = capture({ format: 'json', lineChars: 1000 })
    log.error('m'.repeat(100_000), new Error('e'.repeat(100_000)), { f: 'x'.repeat(100_000) })
    expect(last().length).toBeLessThan(5000)
    expect(json()['msg']).toMatch(/more characters\]$/)
  })
})

describe('secrets', () => {
  it('hides a registered value wherever it appears', () => {
    const { log, last } = capture()
    log.registerSecret('hunter2-hunter2')
    log
      .withTag('a')
      .error('it is hunter2-hunter2', new Error('no hunter2-hunter2', { cause: new Error('hunter2-hunter2') }), {
        deep: [{ x: 'a hunter2-hunter2 b' }],
        'hunter2-hunter2': 1,
      })
    expect(last()).not.toContain('hunter2')
    expect(last()).toContain('it is ***')
  })
  it.each([
    ['Authorization: Bearer abcdef123456', 'abcdef123456'],
    ['key sk-proj-abcdefghijklmnop is wrong', 'abcdefghijklmnop'],
    ['ghp_abcdefghijklmnopqrstuvwxyz', 'abcdefghijklmnop'],
    ['AKIAIOSFODNN7EXAMPLE', 'IOSFODNN7'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl', 'c2lnbmF0dXJl'],
    ['postgres://user:pa55word@db/x', 'pa55word'],
    ['GET https://api.example.org/x?api_key=abc123&page=2', 'abc123'],
    ['wss://x/y?a=1&token=tok%20en', 'tok%20en'],
    ['{"password":"geheim99"}', 'geheim99'],
    ['client_secret = geheim99', 'geheim99'],
  ])('hides the key in %j', (text, secret) => {
    const { log, last } = capture()
    log.info(text)
    log.info('x', { text })
    expect(last()).not.toContain(secret)
    expect(last()).toContain('***')
  })
  it('hides fields named like secrets and leaves counters and names', () => {
    const { log, json } = capture({ format: 'json' })
    log.info('x', {
      apiKey: 'a',
      api_key: 'b',
      botToken: 'c',
      headers: { authorization: 'd', cookie: 'e' },
      input_tokens: 5,
      outputTokens: 6,
      tokens_per_minute: 7,
      api_key_env: 'X_KEY',
      api_key_set: true,
      key: 'a.b',
      password: '',
    })
    expect(json()['fields']).toEqual({
      apiKey: '***',
      api_key: '***',
      botToken: '***',
      headers: { authorization: '***', cookie: '***' },
      input_tokens: 5,
      outputTokens: 6,
      tokens_per_minute: 7,
      api_key_env: 'X_KEY',
      api_key_set: true,
      key: 'a.b',
      password: '',
    })
  })
  it('does not take what a message says of a key for its value', () => {
    const { log, last } = capture()
    for (const text of [
      'plugins.try.token: expected a text, found the number 5',
      'api_key: other machines reach 0.0.0.0, so a key has to be set',
      'plugins.try.password: unknown key; the plugin knows none',
      'webhook_triggers.token: missing and required',
    ]) {
      log.warn(text)
      expect(last()).toContain(text)
    }
    log.warn('token: expectedly-hidden-1, password: other, secret: unknown1')
    expect(last()).not.toMatch(/expectedly|unknown1/)
  })
  it('leaves ordinary text alone', () => {
    const { log, last } = capture()
    const text = 'task-runner sketched a keyboard; https://example.org/a?page=2#token and 5 tokens: 10 of 20'
    log.info(text)
    expect(withoutTime(last())).toBe(`info  ${text}\n`)
  })
  // A rule that looks at each character twice over would need minutes here, and the time limit of a test ends it.
  it('masks a long hostile text', () => {
    const { log, last } = capture()
    for (const part of ['api_key', 'a-', 'https://', 'Bearer ', '?a', 'eyJa']) log.info(part.repeat(20_000))
    expect(last()).toContain('eyJaeyJa')
  })
})

describe('hostile text', () => {
  it('cannot pretend to be another line or move the cursor', () => {
    const { log, last } = capture()
    log.withTag('a\nb').info('one\n12:00:00.000 error two\r\u001b[2J\u0007\u202e', { 'k\n': 'v\u001b[0m\u2028' })
    expect(last().split('\n')).toHaveLength(2)
    expect(last()).not.toMatch(/[\r\u2028\u202e]/)
    expect(last()).not.toContain('\u001b')
    expect(last()).toContain('one\\n12:00:00.000 error two\\r\\u001b[2J\\u0007\\u202e')
  })
  it('cannot get a line of its own through a stack', () => {
    const { log, last } = capture()
    log.error(new Error('x\n12:00:00.000 info  all is well'))
    expect(
      last()
        .trimEnd()
        .split('\n')
        .slice(1)
        .every((line) => line.startsWith('    ')),
    ).toBe(true)
  })
  it('is cut, never inside a character', () => {
    const { log, last } = capture({ lineChars: 11 })
    log.info(`0123456789${'😀'.repeat(10)}`)
    expect(withoutTime(last())).toBe('info  0123456789… [20 more characters]\n')
  })
})

describe('level', () => {
  it('applies to children made before and after it changes', () => {
    const { log, lines } = capture({ level: 'warn' })
    const child = log.withTag('a').withTag('b')
    child.info('no')
    log.setLevel('debug')
    child.debug('yes')
    log.withTag('c').debug('yes')
    log.setLevel('silent')
    child.fatal('no')
    expect(lines.map(withoutTime)).toEqual(['debug [a:b] yes\n', 'debug [c] yes\n'])
  })
  it('hands no more of a huge line to whoever listens than is written', () => {
    let size = 0
    const { log } = capture({
      lineChars: 1000,
      onLine: (line) => {
        size = JSON.stringify(line).length
      },
    })
    const huge = 'x'.repeat(100_000)
    log.error(huge, new AggregateError([new Error(huge), new Error(huge)], huge), { one: huge, two: [huge, huge] })
    expect(size).toBeGreaterThan(3000)
    expect(size).toBeLessThan(5000)
  })
  it('hands every written line to whoever listens, masked', () => {
    const heard: string[] = []
    const { log } = capture({ onLine: (line) => heard.push(`${line.level} ${line.tag} ${line.message}`) })
    log.withTag('a').info('token=abcdefgh')
    expect(heard).toEqual(['info a token=***'])
  })
  it('writes every line of a burst of equal ones, holding no timer', () => {
    const { log, lines } = capture()
    for (let at = 0; at < 20; at++) log.info('same')
    expect(lines).toHaveLength(20)
    expect(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length).toBeLessThan(3)
  })
})
