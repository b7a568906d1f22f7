import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toConfig } from '../../support/chat-stage.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import type { Json } from '../../support/json.ts'
import { callTool, turnPlugins } from '../plugin-test.ts'

const mp3 = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0x64]), Buffer.alloc(2000)])
const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16]), Buffer.from('JFIF\0'), Buffer.alloc(20)])
const flac = Buffer.concat([Buffer.from('fLaC'), Buffer.alloc(60)])

let fake: FakeProvider
beforeAll(async () => {
  fake = await startFakeProvider({ key: 'test-key' })
})
afterAll(() => fake[Symbol.asyncDispose]())

/** `openai` and `groq` at the fake provider. */
function start(media: object): Promise<PluginTest> {
  const provider = { api_key: 'test-key', base_url: fake.url }
  return startPlugin({
    plugin: new URL('../../../plugins/media/', import.meta.url),
    builtIns: [...turnPlugins, 'files', 'openai-compatible', 'budgets', 'system'],
    fetch: 'network',
    config: toConfig(fake, { providers: { openai: provider, groq: provider }, plugins: { media } }),
  })
}
async function withRecording(test: PluginTest, agent: string): Promise<string> {
  const folder = join(test.home, 'data', 'workspaces', agent)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'talk.mp3'), mp3)
  return folder
}

describe('what is configured', () => {
  let test: PluginTest
  let agent = ''
  beforeAll(async () => {
    test = await start({
      images: { provider: 'openai', model: 'dall-e-3' },
      transcription: { provider: 'openai', model: 'gpt-4o-transcribe' },
      voice: 'shimmer',
      max_speech_chars: 5000,
      prices: { 'openai/dall-e-3': { image: 0.04 }, 'groq/painter': { image: 0.01 } },
    })
    agent = await test.spawn('maker')
  })
  afterAll(() => test[Symbol.asyncDispose]())
  const limit = (usd: number) => test.request('PUT', `/api/budget/agents/${agent}`, { max_cost_per_hour_usd: usd })
  const costOf = async (model: string): Promise<number> => {
    const { body } = await test.request<Json>('GET', '/api/usage/by-model')
    return body.models.find((each: { model: string }) => each.model === model)?.cost_usd ?? 0
  }

  it('decides on the model, and its price is that of each picture that came', async () => {
    fake.script({ images: [jpeg.toString('base64')] })
    const { text } = await callTool(test, agent, 'image_generate', { prompt: 'Dots', count: 3 })
    expect(text).toMatch(/media\/image-[0-9a-f]{12}\.jpg .*openai\/dall-e-3, \$0\.0400/)
    await callTool(test, agent, 'image_generate', { prompt: 'Dots', count: 2 })
    expect(await costOf('dall-e-3')).toBeCloseTo(0.12, 6)
    const made = await test.metrics('svc_media_calls_total')
    expect([...made].find(([name]) => name.includes('outcome="made"'))?.[1]).toBe(2)
  })
  it('lets a call name a model of another provider with a key', async () => {
    const { text } = await callTool(test, agent, 'image_generate', { prompt: 'Dots', model: 'groq/painter' })
    expect(text).toContain('with groq/painter, $0.0100')
    expect(fake.requests.at(-1)?.media?.model).toBe('painter')
  })
  it('reserves the price of every picture, and gives back what a refused call reserved', async () => {
    await limit((await costOf('dall-e-3')) + (await costOf('painter')) + 0.1)
    const before = fake.requests.length
    expect(await callTool(test, agent, 'image_generate', { prompt: 'Dots', count: 3 })).toMatchObject({
      failed: true,
      text: expect.stringContaining('hourly budget'),
    })
    expect(fake.requests.length).toBe(before)
    fake.script({ status: 400 })
    expect((await callTool(test, agent, 'image_generate', { prompt: 'Dots', count: 2 })).text).toContain('It failed')
    expect(await callTool(test, agent, 'image_generate', { prompt: 'Dots', count: 2 })).toMatchObject({ failed: false })
    await limit(0)
  })
  it('has a voice, and the smaller limit of the provider holds', async () => {
    fake.script({ audio: flac })
    const { text } = await callTool(test, agent, 'text_to_speech', { text: 'Hello', format: 'flac' })
    expect(text).toMatch(/media\/speech-[0-9a-f]{12}\.flac .*with voice shimmer/)
    expect(fake.requests.at(-1)?.media?.voice).toBe('shimmer')
    const { text: refusal } = await callTool(test, agent, 'text_to_speech', { text: 'x'.repeat(4097) })
    expect(refusal).toContain('at most 4096 are read aloud in one call (of openai)')
  })
  it('transcribes into a text where no times are told, and replaces nothing', async () => {
    const folder = await withRecording(test, agent)
    fake.script({ transcript: { text: 'Good morning.' } })
    const { text } = await callTool(test, agent, 'media_transcribe', { path: 'talk.mp3' })
    expect(text).toContain('Transcribed "talk.mp3" into "talk.txt".')
    expect(await readFile(join(folder, 'talk.txt'), 'utf8')).toBe('Good morning.\n')
    expect(fake.requests.at(-1)?.media).toMatchObject({ model: 'gpt-4o-transcribe', filename: 'recording.mp3' })
    expect((await callTool(test, agent, 'media_transcribe', { path: 'talk.mp3' })).text).toContain('is there already')
    fake.script({ transcript: { text: ' ' } })
    expect((await callTool(test, agent, 'speech_to_text', { path: 'talk.mp3' })).text).toBe('Nothing is said in it.')
  })
  it('leaves no call to a budget that has no room for all of a text or a recording', async () => {
    await withRecording(test, agent)
    const { body } = await test.request<Json>('GET', '/api/usage/by-model')
    const spent = body.models.reduce((sum: number, { cost_usd: cost }: { cost_usd: number }) => sum + cost, 0)
    await limit(spent + 0.0005)
    const before = fake.requests.length
    for (const [tool, args] of [
      ['text_to_speech', { text: 'x'.repeat(100) }],
      ['speech_to_text', { path: 'talk.mp3' }],
    ] as const)
      expect((await callTool(test, agent, tool, args)).text).toContain('hourly budget')
    expect(fake.requests.length).toBe(before)
    await limit(0)
  })
})

it("an agent's own provider is used where it can do it, and speech needs a voice", async () => {
  await using test = await start({ speech: { provider: 'groq', model: 'speaker' } })
  const own = await test.spawn('own', '[model]\nprovider = "groq"\nmodel = "fake-1"\n[capabilities]\ntools = ["*"]')
  await withRecording(test, own)
  fake.script({ transcript: { text: 'Hello.' } })
  await callTool(test, own, 'speech_to_text', { path: 'talk.mp3' })
  expect(fake.requests.at(-1)?.media?.model).toBe('whisper-large-v3-turbo')
  const before = fake.requests.length
  expect((await callTool(test, own, 'text_to_speech', { text: 'Hello' })).text).toContain('groq has no usual voice')
  expect(fake.requests.length).toBe(before)
})
