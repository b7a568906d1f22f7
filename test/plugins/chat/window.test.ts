import { describe, expect, it } from 'vitest'
import type { CompletionRequest, Turn } from 'svc/providers'
import { checkAnswer } from '../../../plugins/chat/turn/response-format.ts'
import { firstFault } from '../../../core/schema/json-schema-check.ts'
import { ToolCallRate } from '../../../plugins/chat/safety/tool-call-rate.ts'
import { quietFor } from '../../../plugins/chat/turn/acceptance.ts'
import { toTranscript } from '../../../plugins/chat/context/compactor.ts'
import { countTokens, familyOf, fit, maxTokens, measure, pressureOf } from '../../../plugins/chat/context/window.ts'

const user = (text: string): Turn => ({ role: 'user', parts: [{ type: 'text', text }] })
const said = (text: string): Turn => ({ role: 'assistant', text, calls: [] })
const called = (id: string): Turn => ({ role: 'assistant', text: '', calls: [{ id, name: 'look', args: {} }] })
const result = (callId: string, text: string): Turn => ({ role: 'tool', callId, tool: 'look', text, failed: false })
const request = (turns: readonly Turn[], more: Partial<CompletionRequest> = {}): CompletionRequest => ({
  model: 'fake',
  system: 'Be brief.',
  tools: [],
  turns,
  ...more,
})
const size = (turns: readonly Turn[]): number => measure(request(turns), '', 1).history

describe('counting tokens', () => {
  it.each([
    // About what such texts are known to take: ten tokens for the English sentence, one for most Chinese characters,
    // four to five letters of Russian for two.
    ['gpt-4o', 'The quick brown fox jumps over the lazy dog. '.repeat(20), 200],
    ['gpt-4o', '敏捷的棕色狐狸跳过了懒狗。'.repeat(20), 240],
    ['claude-sonnet-4', 'The quick brown fox jumps over the lazy dog. '.repeat(20), 220],
    ['gemini-2.5-pro', 'The quick brown fox jumps over the lazy dog. '.repeat(20), 200],
    ['llama-3.3-70b', 'Быстрая коричневая лиса прыгает через ленивую собаку. '.repeat(20), 400],
  ])('for %s is of the right size', (model, text, truth) => {
    const counted = countTokens(text, familyOf(model))
    expect(counted).toBeGreaterThan(truth * 0.67)
    expect(counted).toBeLessThan(truth * 1.5)
  })
  it('without looking is never less than with', () => {
    for (const text of ['plain words', '漢字'.repeat(50), '12345'.repeat(30), '👩‍👩‍👧'.repeat(9), 'Ünïcödé']) {
      for (const model of ['gpt-4o', 'claude-4', 'gemini-3', 'qwen-3', 'llama-4', 'nobody-knows']) {
        expect(maxTokens([user(text)])).toBeGreaterThanOrEqual(countTokens(text, familyOf(model)))
      }
    }
  })
  it('counts a megabyte like its parts', () => {
    const part = 'some words and 123 漢字 '
    const one = countTokens(part.repeat(50), familyOf('gpt-4o'))
    const all = countTokens(part.repeat(50_000), familyOf('gpt-4o'))
    expect(all).toBeGreaterThan(one * 990)
    expect(all).toBeLessThan(one * 1010)
  })
  it('puts the pressure in words', () => {
    expect([0, 0.49, 0.5, 0.69, 0.7, 0.85, 0.86, 2].map(pressureOf)).toEqual([
      'low',
      'low',
      'medium',
      'medium',
      'high',
      'high',
      'critical',
      'critical',
    ])
  })
})

describe('fitting a request into the window', () => {
  it('changes nothing that fits', () => {
    const asked = request([user('hello'), said('hi'), user('bye')])
    expect(fit(asked, 100_000)).toBe(asked)
  })
  it('leaves out the oldest exchanges, whole', () => {
    const turns = [
      user('a'.repeat(4000)),
      called('1'),
      result('1', 'seen'),
      said('done'),
      user('b'.repeat(2000)),
      said('yes'),
      user('last'),
    ]
    const kept = fit(request(turns), 1500).turns
    expect(kept[0]).toEqual(turns[4])
    expect(kept).toHaveLength(3)
  })
  it('never leaves out the last message of the user and what came after it', () => {
    const turns = [user('old'), said('yes'), user('q'.repeat(8000)), called('1'), result('1', 'r'.repeat(2000))]
    const kept = fit(request(turns), 1000).turns
    expect(kept.slice(0, 2)).toEqual(turns.slice(2, 4))
    expect(kept).toHaveLength(3)
  })
  it('cuts a single result to its part of the window and says so', () => {
    const [, , cut] = fit(request([user('look'), called('1'), result('1', 'word '.repeat(20_000))]), 10_000).turns
    expect(size([cut as Turn])).toBeLessThanOrEqual(3100)
    expect(cut).toMatchObject({ callId: '1', text: expect.stringContaining('[cut:') })
  })
  it('keeps the newest results when all together are too much', () => {
    const turns = [
      user('look'),
      ...['1', '2', '3', '4', '5'].flatMap((id) => [called(id), result(id, 'word '.repeat(2500))]),
    ]
    const texts = fit(request(turns), 12_000).turns.flatMap((turn) => (turn.role === 'tool' ? [turn.text] : []))
    expect(texts[0]).toContain('[removed')
    expect(texts.at(-1)).not.toContain('[removed')
    expect(texts).toHaveLength(5)
  })
})

describe('quiet hours', () => {
  const at = (time: string): Date => new Date(`2026-03-01T${time}`)
  it.each([
    ['22:00-07:00', '23:30:00', 7.5 * 3600],
    ['22:00-07:00', '06:59:30', 30],
    ['22:00-07:00', '07:00:00', 0],
    ['22:00-07:00', '12:00:00', 0],
    ['09:00-17:00', '09:00:00', 8 * 3600],
    ['09:00-17:00', '17:00:00', 0],
    ['9:00 - 17:00', '16:00:00', 3600],
    ['nonsense', '12:00:00', 0],
    ['25:00-99:00', '12:00:00', 0],
    ['10:00-10:00', '10:00:00', 0],
    [undefined, '12:00:00', 0],
  ])('%s at %s: %i seconds more', (hours, time, secs) => {
    expect(quietFor(hours, at(time))).toBe(secs)
  })
})

describe('the pace of an agent', () => {
  it('lets so many calls through in any minute, for each agent by itself', () => {
    let now = 0
    const rate = new ToolCallRate(() => now)
    expect([rate.take('a', 2), rate.take('a', 2), rate.take('a', 2), rate.take('b', 2)]).toEqual([0, 0, 60, 0])
    now = 59_000
    expect(rate.take('a', 2)).toBe(1)
    now = 60_001
    expect(rate.take('a', 2)).toBe(0)
    for (let n = 0; n < 1000; n++) expect(rate.take('c', 0)).toBe(0)
  })
})

describe('an answer against its schema', () => {
  const schema = {
    type: 'object',
    required: ['name', 'tags'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', minLength: 1 },
      tags: { type: 'array', items: { $ref: '#/$defs/tag' }, maxItems: 2 },
      age: { type: ['integer', 'null'], minimum: 0 },
      kind: { enum: ['a', 'b'] },
    },
    $defs: { tag: { anyOf: [{ type: 'string' }, { type: 'object', required: ['id'] }] } },
  }
  it.each([
    [{ name: 'n', tags: [] }, undefined],
    [{ name: 'n', tags: ['x', { id: 1 }], age: null, kind: 'a' }, undefined],
    [[], 'the value must be object'],
    [{ name: 'n' }, 'the value lacks "tags"'],
    [{ name: '', tags: [] }, 'name is below minLength 1'],
    [{ name: 'n', tags: [1] }, 'tags[0] must be string'],
    [{ name: 'n', tags: ['a', 'b', 'c'] }, 'tags is above maxItems 2'],
    [{ name: 'n', tags: [], age: 1.5 }, 'age must be integer or null'],
    [{ name: 'n', tags: [], kind: 'c' }, 'kind must be one of ["a","b"]'],
    [{ name: 'n', tags: [], extra: 1 }, 'the value must not have "extra"'],
  ])('%j: %s', (value, fault) => {
    expect(firstFault(value, schema)).toBe(fault)
  })
  it('ends for a schema that refers to itself for ever', () => {
    expect(firstFault(1, { $ref: '#' })).toBeUndefined()
    expect(firstFault({ a: { a: { a: 1 } } }, { type: 'object', properties: { a: { $ref: '#' } } })).toBe(
      'a.a.a must be object',
    )
  })
  it.each([
    ['all of', { allOf: [{ $ref: '#' }, { $ref: '#' }] }],
    ['one of', { oneOf: [{ $ref: '#' }, { $ref: '#' }] }],
    ['any of, where none fits', { anyOf: [{ $ref: '#' }, { $ref: '#' }], properties: { a: false } }],
    ['all of, by a long way', { allOf: [{ $ref: `#${'/'.repeat(100_000)}` }, { $ref: '#' }] }],
    ['all of, beside a long list', { enum: ['x'.repeat(1_000_000), { a: 1 }], allOf: [{ $ref: '#' }, { $ref: '#' }] }],
  ])('ends for a schema that refers to itself twice: %s', (_what, schema) => {
    expect(firstFault({ a: 1 }, schema)).toMatch(/more than 200000 steps|fits more than one|must not be there/)
  })
  it('is taken out of its fence, and must be JSON', async () => {
    expect(await checkAnswer('```json\n{"a":1}\n```', { type: 'json' })).toEqual({ text: '{"a":1}' })
    expect(await checkAnswer('"text"', { type: 'json' })).toHaveProperty('fault')
    expect(await checkAnswer('Sure! {"a":1}', { type: 'json' })).toHaveProperty('fault')
  })
})

describe('a transcript for the summary', () => {
  const message = (role: 'user' | 'assistant' | 'tool', text: string) => ({
    id: text,
    role,
    turnId: 't',
    createdAt: '',
    blocks: [{ type: 'text' as const, text }],
  })
  it('is cut between messages, and holds them all in order', () => {
    const pieces = toTranscript(
      Array.from({ length: 20 }, (_, n) => message('user', `message ${n} ${'x'.repeat(40)}`)),
      200,
    )
    expect(pieces.every((piece) => piece.length <= 200)).toBe(true)
    expect(pieces.join('\n').match(/message \d+/g)).toEqual(Array.from({ length: 20 }, (_, n) => `message ${n}`))
  })
  it('keeps both ends of a message that is too long', () => {
    const [piece = ''] = toTranscript([message('user', `begin ${'x'.repeat(5000)} end`)], 300)
    expect(piece.length).toBeLessThanOrEqual(300)
    expect(piece).toMatch(/^User: begin .* \[…\] .* end$/)
  })
})
