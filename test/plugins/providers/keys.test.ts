import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { Answer, FakeProvider, RecordedRequest } from '../../support/fake-provider.ts'
import { createRig } from './rig.ts'
import type { RigOptions } from './rig.ts'

let fake: FakeProvider
beforeAll(async () => {
  fake = await startFakeProvider()
})
afterAll(() => fake[Symbol.asyncDispose]())

const keyOf = ({ headers }: RecordedRequest) => String(headers['authorization']).replace('Bearer ', '')
/** The keys that were used since then. */
const usedSince = (start: number) => fake.requests.slice(start).map(keyOf)
/** What each key is answered; `fine` for all others. */
function answers(by: Record<string, Answer> = {}): number {
  fake.always((request) => by[keyOf(request)] ?? { text: keyOf(request) })
  return fake.requests.length
}
const rig = (keys: readonly string[], more: RigOptions['config'] = {}) =>
  createRig({ config: { ...more, providers: { openai: { base_url: fake.url, api_keys: [...keys] } } } })
const refused: Answer = { status: 401 }
const often = (secs?: number): Answer => ({
  status: 429,
  ...(secs === undefined ? {} : { headers: { 'retry-after': String(secs) } }),
})

describe('several keys', () => {
  it('that join at the same moment are all there, and one that goes then is gone', async () => {
    await using part = await createRig({ config: { providers: { openai: { base_url: fake.url } } } })
    await Promise.all(['a', 'b', 'c'].map((key) => part.keys.store('openai', key, fake.url, { add: true })))
    answers()
    expect(new Set([await part.ask(), await part.ask(), await part.ask()])).toEqual(new Set(['a', 'b', 'c']))
    await Promise.all([part.keys.store('openai', 'd', fake.url), part.keys.remove('openai')])
    expect(part.keys.source('openai', [])).toBeUndefined()
  })
  it('are taken in turn', async () => {
    await using part = await rig(['a', 'b', 'c'])
    answers()
    expect([await part.ask(), await part.ask(), await part.ask(), await part.ask()]).toEqual(['a', 'b', 'c', 'a'])
  })
  it('stand beside the one key of a section, or in numbered variables up to the first that is missing', async () => {
    await using section = await createRig({
      config: { providers: { openai: { base_url: fake.url, api_key: 'first', api_keys: ['second'] } } },
    })
    answers()
    expect([await section.ask(), await section.ask(), await section.ask()]).toEqual(['first', 'second', 'first'])
    const env = { OPENAI_API_KEY: 'e1', OPENAI_API_KEY_2: 'e2', OPENAI_API_KEY_4: 'e4' }
    await using variables = await createRig({
      env,
      config: { providers: { openai: { base_url: fake.url, key_origins: [fake.origin] } } },
    })
    expect([await variables.ask(), await variables.ask(), await variables.ask()]).toEqual(['e1', 'e2', 'e1'])
  })
  it.each([[401], [403]])('one that is refused with %i rests, and another one answers at once', async (status) => {
    await using part = await rig(['bad', 'good'])
    const start = answers({ bad: { status } })
    expect(await part.ask()).toBe('good')
    expect(usedSince(start)).toEqual(['bad', 'good'])
    expect(part.pauses).toEqual([])
    for (let call = 0; call < 3; call++) expect(await part.ask()).toBe('good')
    expect(usedSince(start)).toEqual(['bad', 'good', 'good', 'good', 'good'])
    answers()
    part.clock.advance(600_000)
    expect(new Set([await part.ask(), await part.ask()])).toEqual(new Set(['bad', 'good']))
  })
  it('one that is used too often rests as long as the provider asks, but not for hours', async () => {
    await using part = await rig(['a', 'b'])
    let start = answers({ a: often(7) })
    expect(await part.ask()).toBe('b')
    expect(part.pauses).toEqual([])
    answers()
    part.clock.advance(6900)
    expect([await part.ask(), await part.ask()]).toEqual(['b', 'b'])
    part.clock.advance(200)
    expect(new Set([await part.ask(), await part.ask()])).toEqual(new Set(['a', 'b']))
    start = answers({ a: often(7200) })
    await part.ask()
    await part.ask()
    expect(usedSince(start)).toContain('a')
    answers()
    part.clock.advance(60_000)
    expect(new Set([await part.ask(), await part.ask()])).toEqual(new Set(['a', 'b']))
  })
  it('all used too often: the call waits for the first that may be used', async () => {
    await using part = await rig(['a', 'b'], { tries: 2 })
    const start = answers({ a: often(50), b: often(20) })
    await expect(part.ask()).rejects.toMatchObject({ reason: 'rate_limit' })
    expect([usedSince(start), part.pauses]).toEqual([['a', 'b', 'b'], [20_000]])
    answers()
    const waiting = part.ask()
    await expect.poll(() => part.clock.waiting).toBeGreaterThan(0)
    part.clock.advance(20_000)
    expect(await waiting).toBe('b')
  })
  it('all refused: the caller is told which one to check, and each was tried once', async () => {
    await using part = await createRig({
      env: { OPENAI_API_KEY: 'CANARY-1', OPENAI_API_KEY_2: 'CANARY-2' },
      config: { providers: { openai: { base_url: fake.url, key_origins: [fake.origin] } } },
    })
    const start = answers({ 'CANARY-1': refused, 'CANARY-2': refused })
    await expect(part.ask()).rejects.toMatchObject({
      reason: 'auth',
      message: expect.stringMatching(/^openai answered 401.*Check the key in OPENAI_API_KEY_2\.$/),
    })
    expect(usedSince(start)).toEqual(['CANARY-1', 'CANARY-2'])
    await expect(part.ask()).rejects.toMatchObject({ reason: 'auth', message: expect.not.stringContaining('CANARY') })
    expect(usedSince(start)).toHaveLength(3)
  })
  it('one whose circuit is open is passed over', async () => {
    await using part = await rig(['broken', 'good'], { tries: 1 })
    answers({ broken: { status: 500 } })
    for (let call = 0; call < 10; call++) await part.ask().catch(() => undefined)
    const start = fake.requests.length
    for (let call = 0; call < 4; call++) expect(await part.ask()).toBe('good')
    expect(usedSince(start)).toEqual(['good', 'good', 'good', 'good'])
  })
  it('the lone key of a provider never rests', async () => {
    await using part = await rig(['only'])
    answers({ only: refused })
    await expect(part.ask()).rejects.toMatchObject({ reason: 'auth' })
    answers()
    expect(await part.ask()).toBe('only')
  })
  it('nothing that was said is said again with another key', async () => {
    await using part = await rig(['a', 'b'])
    const start = answers({ a: { text: ['half'], fault: 'reset' } })
    await expect(part.ask()).rejects.toMatchObject({ reason: 'cut' })
    expect(usedSince(start)).toEqual(['a'])
  })
})

describe('keys that are stored', () => {
  it('replace what is there, or join it', async () => {
    await using part = await rig(['configured'])
    answers()
    await part.keys.store('openai', 's1', fake.url)
    expect(await part.ask()).toBe('s1')
    await part.keys.store('openai', ['s2', 's3', 's1'], fake.url, { add: true })
    expect([await part.ask(), await part.ask(), await part.ask()].toSorted()).toEqual(['s1', 's2', 's3'])
    await part.keys.store('openai', 'alone', fake.url)
    expect([await part.ask(), await part.ask()]).toEqual(['alone', 'alone'])
    await part.keys.remove('openai')
    expect(await part.ask()).toBe('configured')
  })
  it('for another address are not carried to the present one', async () => {
    await using part = await createRig({ config: { providers: { openai: { base_url: fake.url } } } })
    answers()
    await part.keys.store('openai', 'old', 'https://api.openai.com/v1')
    await part.keys.store('openai', 'new', fake.url, { add: true })
    expect([await part.ask(), await part.ask()]).toEqual(['new', 'new'])
  })
  it('are not more than fifty', async () => {
    await using part = await rig(['configured'])
    await part.keys.store(
      'openai',
      Array.from({ length: 50 }, (_, index) => `k${index}`),
      fake.url,
    )
    await expect(part.keys.store('openai', 'one-more', fake.url, { add: true })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })
})
