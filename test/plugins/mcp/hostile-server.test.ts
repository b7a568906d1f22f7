import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import { describe, expect, it } from 'vitest'
import { toPlatformFetch } from '../../../plugins/mcp/connection/http-fetch.ts'
import { safeSchema } from '../../../plugins/mcp/connection/output-schema.ts'

describe('an output schema', () => {
  const isValid = (schema: object, value: unknown): boolean =>
    new AjvJsonSchemaValidator().getValidator(safeSchema(schema) as never)(value).valid
  const reference = (name: string) => ({ $ref: `#/$defs/${name}` })
  /** Each names the next one twice. */
  const doubling = (depth: number, more: object = {}) => ({
    allOf: [reference('d0')],
    $defs: Object.fromEntries(
      Array.from({ length: depth }, (_, at) => [
        `d${at}`,
        { allOf: [reference(`d${at + 1}`), reference(`d${at + 1}`)] },
      ]),
    ),
    ...more,
  })
  const twice = { allOf: [{ items: { $ref: '#' } }, { items: { $ref: '#' } }] }
  let nested: unknown = []
  for (let depth = 0; depth < 40; depth++) nested = [nested]

  it.each([
    ['references that double', doubling(40), {}],
    ['recursion that doubles', twice, nested],
    [
      'items that are compared with each other',
      { type: 'object', properties: { list: { type: 'array', uniqueItems: true } } },
      { list: Array.from({ length: 50_000 }, (_, at) => [at]) },
    ],
    ['a regular expression without end', { properties: { a: { pattern: '^(a+)+$' } } }, { a: `${'a'.repeat(40)}!` }],
    ['a reference to nothing, or itself', { $ref: '#/$defs/none', $defs: { none: { $ref: '#/$defs/none' } } }, {}],
  ])('with %s is checked at once', (_name, schema, value) => {
    const began = process.cpuUsage()
    expect(isValid(schema, value)).toBe(true)
    expect(process.cpuUsage(began).user / 1000).toBeLessThan(2000)
  })

  it('with references is still checked, and may have properties that are called like its words', () => {
    const node = { type: 'object', properties: { name: { type: 'string' }, next: reference('node') } }
    const schema = { ...reference('node'), $defs: { node } }
    expect(isValid(schema, { name: 'a', next: { name: 'b' } })).toBe(true)
    expect(isValid(schema, { name: 1 })).toBe(false)
    const words = { type: 'object', properties: { pattern: { type: 'string' }, format: { enum: ['a'] } } }
    expect([isValid(words, { pattern: 1 }), isValid(words, { format: 'b' })]).toEqual([false, false])
  })
})

describe('a stream of events', () => {
  const read = async (chunk: string, times: number): Promise<number> => {
    let sent = 0
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent++ < times) controller.enqueue(Buffer.from(chunk))
        else controller.close()
      },
    })
    const answer = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    const fetch = toPlatformFetch((async () => ({ toResponse: () => answer })) as never, {
      maxMessageBytes: 10_000,
      maxMessagesPerSecond: 1_000_000,
      answerTimeoutMs: 1000,
    })
    return (await (await fetch('https://example.com/', { headers: { accept: 'text/event-stream' } })).text()).length
  }

  it.each([
    ['lines', 'data: aaaaaaaa\n'],
    ['lines that look blank from behind', 'data: aaaaaaaa\nd\n'],
    ['lines of the other kind', 'data: aaaaaaaa\r'],
    ['one line', 'data'],
  ])('with an event of endless %s is cut', async (_name, chunk) => {
    await expect(read(chunk, 5000)).rejects.toThrow('max_message_bytes')
  })

  it.each(['data: a\n\n', 'data: a\r\n\r\n', 'data: a\ndata: b\n\n'])(
    'of events that end is read: %j',
    async (event) => {
      expect(await read(event, 5000)).toBe(event.length * 5000)
    },
  )
})

it.each(['application/json', 'text/event-stream'])(
  'an answer of %s that does not end is cut in time where no stream was asked for',
  async (type) => {
    let wasCancelled = false
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from('{')),
      cancel: () => void (wasCancelled = true),
    })
    const answer = new Response(body, { headers: { 'content-type': type } })
    const limits = { maxMessageBytes: 1000, maxMessagesPerSecond: 1000, answerTimeoutMs: 10 }
    const fetch = toPlatformFetch((async () => ({ toResponse: () => answer })) as never, limits)
    await expect(fetch('https://example.com/')).rejects.toThrow('did not end its answer within 0.01 s')
    expect(wasCancelled).toBe(true)
  },
)
