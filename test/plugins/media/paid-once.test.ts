import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import { expect, it } from 'vitest'
import { prices } from '../../../plugins/media/prices.ts'
import { findProvider } from '@pydantic/genai-prices'
import { toConfig } from '../../support/chat-stage.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

const plugin = new URL('../../../plugins/media/', import.meta.url)
const builtIns = [...turnPlugins, 'files', 'openai-compatible', 'budgets']

it('the same call, made again, is not paid for again', async () => {
  await using fake = await startFakeProvider({ key: 'test-key' })
  await using test = await startPlugin({
    plugin,
    builtIns,
    fetch: 'network',
    config: toConfig(fake, { providers: { openai: { api_key: 'test-key', base_url: fake.url } } }),
  })
  const agentId = await test.spawn('maker')
  const same = { agentId, turnId: 't-1', callId: 'c-1' }
  const first = await test.callTool('image_generate', { prompt: 'A dot' }, same)
  const again = await test.callTool('image_generate', { prompt: 'A dot' }, same)
  expect(first.failed).toBe(false)
  expect(again.text).toBe(first.text)
  expect(fake.requests.filter(({ media }) => media)).toHaveLength(1)
  // What was refused was not paid for, so it may be made again.
  const other = { ...same, callId: 'c-2' }
  fake.script({ status: 400 })
  expect((await test.callTool('image_generate', { prompt: 'A dot' }, other)).failed).toBe(true)
  expect((await test.callTool('image_generate', { prompt: 'A dot' }, other)).failed).toBe(false)
  // Nobody knows what became of a call that was cut off.
  const third = { ...same, callId: 'c-3' }
  const stop = new AbortController()
  fake.script({ fault: 'silent' })
  const before = fake.requests.length
  const cut = test.callTool('image_generate', { prompt: 'A dot' }, { ...third, signal: stop.signal })
  cut.catch(() => undefined)
  await fake.request(before)
  stop.abort(new Error('the process ends'))
  await expect(cut).rejects.toThrow('the process ends')
  expect(await fake.requests[before]?.closed).toBe(false)
  expect((await test.callTool('image_generate', { prompt: 'A dot' }, third)).text).toContain('may have been paid for')
  expect(fake.requests.length - before).toBe(1)
  // Something was made, and it was not what was asked for.
  const fourth = { ...same, callId: 'c-4' }
  fake.script({ images: [] })
  expect((await test.callTool('image_generate', { prompt: 'A dot' }, fourth)).failed).toBe(true)
  expect((await test.callTool('image_generate', { prompt: 'A dot' }, fourth)).text).toContain('may have been paid for')
  expect(fake.requests.length - before).toBe(2)
})

it('each limit of the configuration is kept, and says which it is', async () => {
  await using fake = await startFakeProvider({ key: 'test-key' })
  const media = { max_images: 1, max_speech_chars: 5, max_audio_bytes: 50, timeout_secs: 1 }
  const providers = { openai: { api_key: 'test-key', base_url: fake.url } }
  await using test = await startPlugin({
    plugin,
    builtIns: [...builtIns, 'system'],
    fetch: 'network',
    config: toConfig(fake, { providers, plugins: { media } }),
  })
  const agentId = await test.spawn('maker')
  const folder = join(test.home, 'data', 'workspaces', agentId)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'long.wav'), Buffer.alloc(51))
  const refusals = [
    ['image_generate', { prompt: 'x', count: 2 }, 'at most 1 pictures in one call ([plugins.media] max_images)'],
    ['text_to_speech', { text: 'six ch' }, 'at most 5 are read aloud in one call ([plugins.media] max_speech_chars)'],
    ['speech_to_text', { path: 'long.wav' }, 'at most 50 are read'],
  ] as const
  for (const [tool, args, why] of refusals) {
    const answer = await test.callTool(tool, args, { agentId })
    expect(answer).toMatchObject({ failed: true, text: expect.stringContaining(why) })
  }
  expect(fake.requests).toHaveLength(0)
  fake.script({ fault: 'silent' })
  const late = await test.callTool('image_generate', { prompt: 'x' }, { agentId })
  expect(late).toMatchObject({ failed: true, text: expect.stringContaining('may have been paid for') })
  expect(fake.requests).toHaveLength(1)
  const counted = await test.metrics('svc_media_calls_total')
  expect([...counted.values()]).toEqual([1])
})

it('its tools appear with a key and go with it, while the daemon runs', async () => {
  await using fake = await startFakeProvider()
  await using host = await startHost({ config: toConfig(fake, { providers: { openai: { base_url: fake.url } } }) })
  const offered = async (): Promise<readonly string[]> => {
    const { body } = await host.json<Json>('GET', '/api/tools')
    return body.tools
  }
  expect(await offered()).not.toContain('image_generate')
  const set = await host.json('POST', '/api/providers/openai/key', { key: 'sk-test-key-0001' })
  expect(set.status).toBeLessThan(300)
  expect(await offered()).toEqual(
    expect.arrayContaining(['image_generate', 'text_to_speech', 'speech_to_text', 'media_transcribe']),
  )
  await host.json('DELETE', '/api/providers/openai/key')
  expect(await offered()).not.toContain('image_generate')
})

const VENDORS: Readonly<Record<string, string>> = { gemini: 'google', 'vertex-ai': 'google' }
it('knows the prices that the package knows', () => {
  for (const [name, price] of Object.entries(prices)) {
    const [provider = '', model = ''] = name.split('/')
    const found = findProvider({ providerId: VENDORS[provider] ?? provider })?.models.find(({ id }) => id === model)
    if (!found || Array.isArray(found.prices) || price.million_chars !== undefined) continue
    const known = found.prices as Record<string, number | undefined>
    const hours = known['audio_hours']
    if (hours !== undefined) expect(price.minute, name).toBeCloseTo(hours / 60, 9)
    else {
      expect(price.input, name).toBe(known['input_audio_mtok'] ?? known['input_mtok'])
      expect(price.output, name).toBe(known['output_image_mtok'] ?? known['output_mtok'])
      if (price.words !== undefined) expect(price.words, name).toBe(known['output_mtok'])
    }
  }
})
