import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { isCommand } from '../../../plugins/chat/entry/conversation.ts'
import { decodeFrame } from '../../../plugins/chat/entry/decode-socket.ts'
import { Coalescer } from '../../../plugins/chat/entry/encode-socket.ts'

describe('frames of a client', () => {
  it.each([
    ['{"type":"message","content":"hi"}'],
    ['{"message":"hi"}'],
    ['{"content":"hi"}'],
    ['{"type":"message","content":{"text":"hi"}}'],
    ['{"content":{"content":"hi"}}'],
    ['{"type":"message","content":[{"type":"text","text":"hi"}]}'],
    ['hi'],
    ['"hi"'],
  ])('%s is the message hi', (raw) => expect(decodeFrame(raw)).toEqual({ type: 'message', text: 'hi' }))
  it.each(['42', 'null', '[1]', 'not {json'])('%s is a message as it stands', (raw) =>
    expect(decodeFrame(raw)).toEqual({ type: 'message', text: raw }),
  )
  it.each([
    '',
    '   ',
    '{}',
    '{"type":"message"}',
    '{"type":"message","content":" "}',
    '{"type":"dance"}',
    '{"type":"message","content":5}',
    '{"type":7}',
  ])('%j is not a frame', (raw) => {
    expect(decodeFrame(raw).type).toBe('invalid')
  })
  const picture = { type: 'image_url', image_url: { url: 'https://pictures.example/x.png' } }
  it.each([
    { type: 'message', content: [{ type: 'text', text: 'look' }, picture] },
    { type: 'message', content: { text: 'look', image_url: 'https://pictures.example/x.png' } },
    {
      message: [
        { type: 'text', text: 'look' },
        { type: 'image', source: { type: 'url', url: 'x' } },
      ],
    },
    { content: 'look', images: ['https://pictures.example/x.png'] },
    { content: 'look', media: 'data:image/png;base64,AAAA' },
  ])('says of a picture in %j how it is sent', (frame) => {
    expect(decodeFrame(JSON.stringify(frame))).toEqual({
      type: 'invalid',
      why: expect.stringMatching(/attachments.*\/v1\/chat\/completions takes an image_url/),
    })
  })
  it.each([
    { content: 'data:image/png;base64,AAAA' },
    { content: 'what is an image_url?', images: [], image: null },
    { content: 'hi', attachments: [], sender_name: 'Ann' },
  ])('takes %j', (frame) => {
    expect(decodeFrame(JSON.stringify(frame))).toEqual({ type: 'message', text: frame.content })
  })
  it('takes the session that a message is for, and only the id of one', () => {
    const session = '01234567-89ab-4cde-8f01-23456789abcd'
    expect(decodeFrame(JSON.stringify({ content: 'hi', session_id: session }))).toEqual({
      type: 'message',
      text: 'hi',
      sessionId: session,
    })
    expect(decodeFrame('{"content":"hi","session_id":null}')).toEqual({ type: 'message', text: 'hi' })
    expect(decodeFrame('{"content":"hi","session_id":"the other one"}')).toEqual({
      type: 'invalid',
      why: expect.stringContaining('"session_id" is the id of a session'),
    })
  })
  it('knows a ping and the command form', () => {
    expect(decodeFrame('{"type":"ping"}')).toEqual({ type: 'ping' })
    expect(decodeFrame('{"type":"command","command":"model","args":"x"}')).toEqual({
      type: 'message',
      text: '/model x',
    })
  })
  it('takes a path for a message, not for a command', () => {
    expect(['/new', '/model gpt', '/STOP'].every(isCommand)).toBe(true)
    expect(['/etc/passwd is odd', 'a /new', '/ new', '//'].some(isCommand)).toBe(false)
  })
})

describe('text for a socket', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('goes out at once first, then by time or by length, and whole at the end', () => {
    const sent: string[] = []
    const text = new Coalescer({ ms: 50, chars: 10, send: (delta) => sent.push(delta) })
    text.add('a')
    text.add('b')
    text.add('c')
    expect(sent).toEqual(['a'])
    vi.advanceTimersByTime(50)
    expect(sent).toEqual(['a', 'bc'])
    text.add('0123456789')
    expect(sent).toEqual(['a', 'bc', '0123456789'])
    text.add('z')
    text.flush()
    expect(sent.at(-1)).toBe('z')
    expect(vi.getTimerCount()).toBe(0)
  })
})
