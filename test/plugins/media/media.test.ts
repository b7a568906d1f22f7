import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toSubtitles } from '../../../plugins/media/transcripts.ts'
import { toConfig } from '../../support/chat-stage.ts'
import { PNG } from '../../support/fake-media.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import type { Json } from '../../support/json.ts'
import { auditDetails, callTool, turnPlugins } from '../plugin-test.ts'

const plugin = new URL('../../../plugins/media/', import.meta.url)
const builtIns = [...turnPlugins, 'files', 'openai-compatible', 'budgets']
/** The beginning of an MP3 file, and of a WAV file. */
const mp3 = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0x64]), Buffer.alloc(2000)])
const wav = Buffer.concat([Buffer.from('RIFF\x24\x08\x00\x00WAVEfmt '), Buffer.alloc(2000)])

let fake: FakeProvider
let test: PluginTest
let agent = ''
let folder = ''
beforeAll(async () => {
  fake = await startFakeProvider({ key: 'test-key' })
  test = await startPlugin({
    plugin,
    builtIns,
    fetch: 'network',
    config: toConfig(fake, { providers: { openai: { api_key: 'test-key', base_url: fake.url } } }),
  })
  agent = await test.spawn('maker')
  folder = join(test.home, 'data', 'workspaces', agent)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'talk.wav'), wav)
  await writeFile(join(folder, 'notes.wav'), 'no sound')
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})
const spent = async () => (await test.request<Json>('GET', '/api/usage/by-model')).body.models
const costOf = async (model: string) =>
  (await spent()).find((each: { model: string }) => each.model === model)?.cost_usd ?? 0

describe('pictures', () => {
  it('come into the workspace, with what they cost in the ledger and in the audit trail', async () => {
    const { text, failed } = await callTool(test, agent, 'image_generate', {
      prompt: 'Two dots',
      count: 2,
      size: '1024x1024',
      quality: 'low',
    })
    expect(failed).toBe(false)
    const names = [...text.matchAll(/media\/image-[0-9a-f]{12}-[12]\.png/g)].map(([name]) => name)
    expect(names).toHaveLength(2)
    expect(await readFile(join(folder, names[0] ?? ''))).toEqual(Buffer.from(PNG, 'base64'))
    expect(fake.requests.at(-1)?.media).toMatchObject({
      model: 'gpt-image-2',
      prompt: 'Two dots',
      count: 2,
      size: '1024x1024',
      quality: 'low',
    })
    // 20 tokens in at 5 USD, 2,000 out at 30 USD a million.
    expect(await costOf('gpt-image-2')).toBeCloseTo(0.0601, 6)
    expect(text).toContain('$0.0601')
    expect(await auditDetails(test, 'network_access')).toContain(
      'image_generate with openai/gpt-image-2 for 0.0601 USD',
    )
    expect(await auditDetails(test, 'file_access')).toContain(`image_generate wrote "${names[0]}"`)
  })

  it.each([
    [{ prompt: 'x', count: 5 }, 'at most 4 pictures'],
    [{ prompt: '' }, 'prompt'],
    [{ prompt: 'x', size: 'as large as it gets' }, 'size'],
    [{ prompt: 'x', model: 'nobody/knows' }, 'the price of openai/nobody/knows is unknown'],
    [{ prompt: 'x', model: 'GPT-IMAGE-2' }, 'the price of openai/GPT-IMAGE-2 is unknown'],
  ])('%j is refused before anything is paid', async (args, why) => {
    const before = fake.requests.length
    expect(await callTool(test, agent, 'image_generate', args)).toMatchObject({
      failed: true,
      text: expect.stringContaining(why),
    })
    expect(fake.requests.length).toBe(before)
  })

  it('that are none are not written, and what they cost is counted all the same', async () => {
    const before = await costOf('gpt-image-2')
    fake.script({ images: [Buffer.from('<svg onload="alert(1)"/>').toString('base64')] })
    const files = await readdir(join(folder, 'media'))
    expect(await callTool(test, agent, 'image_generate', { prompt: 'A drawing' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('instead of a picture'),
    })
    expect(await costOf('gpt-image-2')).toBeGreaterThan(before)
    expect(await readdir(join(folder, 'media'))).toEqual(files)
  })

  it('are refused where the budget has no room for the dearest outcome, and nothing stays reserved', async () => {
    const limit = (usd: number) => test.request('PUT', `/api/budget/agents/${agent}`, { max_cost_per_hour_usd: usd })
    await limit(0.3)
    const before = fake.requests.length
    const args = { prompt: 'A dot', quality: 'high' }
    expect(await callTool(test, agent, 'image_generate', args)).toMatchObject({
      failed: true,
      text: expect.stringContaining('hourly budget of agent'),
    })
    expect(fake.requests.length).toBe(before)
    expect(await callTool(test, agent, 'image_generate', { ...args, quality: 'low' })).toMatchObject({ failed: false })
    const { body } = await test.request<Json>('GET', `/api/budget/agents/${agent}`)
    expect(JSON.stringify(body)).toContain('"reserved":0')
    await limit(0)
  })
})

describe('speech', () => {
  it('comes into the workspace at the price of its characters', async () => {
    fake.script({ audio: mp3 })
    const { text, failed } = await callTool(test, agent, 'text_to_speech', { text: 'Hello there.', voice: 'nova' })
    expect(text).toMatch(/^Read 12 characters aloud into media\/speech-[0-9a-f]{12}\.mp3/)
    expect(failed).toBe(false)
    const [name = ''] = /media\/\S+\.mp3/.exec(text) ?? []
    expect(await readFile(join(folder, name))).toEqual(mp3)
    expect(fake.requests.at(-1)?.media).toMatchObject({ text: 'Hello there.', voice: 'nova', format: 'mp3' })
    expect(await costOf('tts-1')).toBeCloseTo((12 * 15) / 1e6, 9)
  })
  it('has the usual voice of the provider, and is no longer than the provider takes', async () => {
    fake.script({ audio: mp3 })
    await callTool(test, agent, 'text_to_speech', { text: 'Hello' })
    expect(fake.requests.at(-1)?.media?.voice).toBe('alloy')
    expect(await callTool(test, agent, 'text_to_speech', { text: 'x'.repeat(4097) })).toMatchObject({
      failed: true,
      text: expect.stringContaining('at most 4096 are read aloud in one call'),
    })
  })
  it('that is no sound is not written', async () => {
    fake.script({ audio: Buffer.from('MZ a program') })
    expect(await callTool(test, agent, 'text_to_speech', { text: 'Hello' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('instead of mp3'),
    })
  })
})

describe('transcription', () => {
  const times = [
    { start: 0, end: 1.25, text: ' Good morning.' },
    { start: 1.25, end: 3661.5, text: ' And good night.' },
  ]
  it('tells what is said, at the price of the minutes that the provider counted', async () => {
    fake.script({ transcript: { text: 'Good morning.', seconds: 120 } })
    expect(await callTool(test, agent, 'speech_to_text', { path: './talk.wav', language: 'en' })).toEqual({
      text: 'Good morning.',
      failed: false,
    })
    expect(fake.requests.at(-1)?.media).toMatchObject({ filename: 'recording.wav', language: 'en' })
    expect(await costOf('whisper-1')).toBeCloseTo(0.012, 6)
  })
  it('comes beside the recording with its times, and replaces nothing', async () => {
    fake.script({ transcript: { text: 'Good morning. And good night.', times } })
    const made = await callTool(test, agent, 'media_transcribe', { path: 'talk.wav' })
    expect(made.text).toContain('Transcribed "talk.wav" into "talk.srt".')
    expect(await readFile(join(folder, 'talk.srt'), 'utf8')).toBe(toSubtitles(times))
    expect(toSubtitles(times)).toBe(
      '1\n00:00:00,000 --> 00:00:01,250\nGood morning.\n\n2\n00:00:01,250 --> 01:01:01,500\nAnd good night.\n',
    )
    const before = fake.requests.length
    expect(await callTool(test, agent, 'media_transcribe', { path: 'talk.wav' })).toMatchObject({
      failed: true,
      text: expect.stringContaining('is there already'),
    })
    expect(fake.requests.length).toBe(before)
  })
  it.each([
    ['notes.wav', 'is text/plain'],
    ['nowhere.wav', 'No file'],
    ['../outside.wav', 'leads out'],
  ])('%s is refused, and nothing is sent', async (path, why) => {
    const before = fake.requests.length
    expect(await callTool(test, agent, 'speech_to_text', { path })).toMatchObject({
      failed: true,
      text: expect.stringContaining(why),
    })
    expect(fake.requests.length).toBe(before)
  })
})

it('says which providers can do what, and counts calls', async () => {
  const { body } = await test.request<Json>('GET', '/api/media/providers')
  expect(body).toEqual({
    providers: [{ provider: 'openai', images: 'gpt-image-2', speech: 'tts-1', transcription: 'whisper-1' }],
    used: {
      images: { provider: 'openai', model: 'gpt-image-2' },
      speech: { provider: 'openai', model: 'tts-1' },
      transcription: { provider: 'openai', model: 'whisper-1' },
    },
  })
})
