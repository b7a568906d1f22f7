import { afterAll, beforeAll, expect, it } from 'vitest'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { createRig } from './rig.ts'
import type { Rig } from './rig.ts'

let fake: FakeProvider
let rig: Rig
beforeAll(async () => {
  fake = await startFakeProvider({ key: 'test-key' })
  const openai = { api_key: 'test-key', base_url: fake.url }
  rig = await createRig({ config: { providers: { openai, groq: { api_key: 'test-key', base_url: fake.url } } } })
})
afterAll(async () => {
  await rig[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})
const options = () => ({ signal: new AbortController().signal, withinMs: 60_000 })
const image = { prompt: 'A dot', count: 1 }

it('lists providers that have their key and can do what is asked for', () => {
  expect(rig.media.usable('images')).toEqual([{ provider: 'openai', model: 'gpt-image-2' }])
  expect(rig.media.usable('speech')).toEqual([{ provider: 'openai', model: 'tts-1' }])
  expect(rig.media.usable('transcription').map(({ provider }) => provider)).toEqual(['openai', 'groq'])
})

it('makes a picture with the usual model of a provider, or with the named one', async () => {
  const usual = await rig.media.resolve('images', { provider: 'openai' })
  expect(usual).toMatchObject({ provider: 'openai', model: 'gpt-image-2' })
  const made = await rig.media.createImages(usual, image, options())
  expect(made.images).toHaveLength(1)
  expect(made.usage).toEqual({ tokens: { input: 20, output: 1000 } })
  const named = await rig.media.resolve('images', { provider: 'openai', model: 'dall-e-3' })
  await rig.media.createImages(named, image, options())
  expect(fake.requests.at(-1)?.media?.model).toBe('dall-e-3')
})

it('refuses a provider that is not known to do it, and one without a key', async () => {
  await expect(rig.media.resolve('images', { provider: 'groq' })).rejects.toThrow('no usual model to make pictures')
  await expect(rig.media.resolve('speech', { provider: 'mistral', model: 'x' })).rejects.toThrow('has no key')
})

it('tries again what was refused for now, and nothing that may have been paid for', async () => {
  const model = await rig.media.resolve('images', { provider: 'openai' })
  let before = fake.requests.length
  fake.script({ status: 429 }, {})
  await rig.media.createImages(model, image, options())
  expect(fake.requests.length - before).toBe(2)

  before = fake.requests.length
  fake.script({ fault: 'silent' })
  const waiting = rig.media.createImages(model, image, { ...options(), withinMs: 30_000 })
  waiting.catch(() => undefined)
  await fake.request(before)
  rig.clock.advance(31_000)
  await expect(waiting).rejects.toThrow('it may have been paid for, so it is not tried again')
  expect(fake.requests.length - before).toBe(1)
})

it('does not take what is no picture, no sound and no text', async () => {
  const model = await rig.media.resolve('images', { provider: 'openai' })
  fake.script({ images: [] })
  await expect(rig.media.createImages(model, image, options())).rejects.toThrow('openai sent images')
  fake.script({ images: ['', ''] })
  await expect(rig.media.createImages(model, image, options())).rejects.toThrow('is empty')
  const speaker = await rig.media.resolve('speech', { provider: 'openai' })
  fake.script({ audio: new Uint8Array() })
  await expect(rig.media.speak(speaker, { text: 'Hello', voice: 'alloy', format: 'mp3' }, options())).rejects.toThrow(
    'is empty',
  )
})

it('tells the times and the seconds of a recording', async () => {
  const times = [{ start: 0, end: 1.5, text: ' Hello.' }]
  fake.script({ transcript: { text: ' Hello. ', times, seconds: 1.5 } })
  const model = await rig.media.resolve('transcription', { provider: 'openai' })
  const recording = { audio: Buffer.from('RIFF'), filename: 'a.wav', mime: 'audio/wav' }
  expect(await rig.media.transcribe(model, recording, options())).toEqual({
    text: 'Hello.',
    segments: times,
    usage: { seconds: 2 },
  })
})
