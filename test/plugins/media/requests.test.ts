import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { toConfig } from '../../support/chat-stage.ts'
import { PNG } from '../../support/fake-media.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

const mp3 = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0x64]), Buffer.alloc(2000)])
const times = [{ start: 0, end: 1.5, text: 'Good morning.' }]

let fake: FakeProvider
let home = ''
let host: TestHost
let agent = ''
let workspace = ''
beforeAll(async () => {
  fake = await startFakeProvider({ key: 'test-key' })
  home = await mkdtemp(join(tmpdir(), 'svc-media-'))
  host = await startHost({
    home,
    config: toConfig(fake),
    plugins: [...turnPlugins, 'files', 'providers/openai-compatible', 'budgets', 'media'],
  })
  agent = (await host.json<Json>('GET', '/api/agents')).body.find(
    ({ name }: { name: string }) => name === 'assistant',
  ).id
  workspace = join(home, 'data', 'workspaces', agent)
})
afterAll(async () => {
  await host?.[Symbol.asyncDispose]()
  await fake?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['media', ...args, '--home', home])
const post = (what: string, body: object, key?: string, agent_id = agent) =>
  host.json('POST', `/api/media/${what}`, { agent_id, ...body }, key === undefined ? {} : { 'idempotency-key': key })
const callsOf = async (model: string): Promise<number> => {
  const { body } = await host.json<Json>('GET', '/api/usage/by-model')
  return body.models.find((each: { model: string }) => each.model === model)?.request_count ?? 0
}

it('svc media has pictures made, and with the same key nothing is made or paid for again', async () => {
  expect((await svc()).stdout).toMatch(/^PROVIDER +IMAGES .*\nopenai +gpt-image-2 +tts-1 +whisper-1\n$/)
  const line = ['image', 'A red kite', '--quality', 'low', '--count', '2', '--key', 'kite-1']
  const made = await svc(...line)
  expect(made, made.stderr).toMatchObject({ code: 0 })
  const [, stem = ''] = /^Made media\/(image-[0-9a-f]{12})-1\.png .*, \$0\.0601\.\n$/.exec(made.stdout) ?? []
  expect(await readFile(join(workspace, 'media', `${stem}-2.png`))).toEqual(Buffer.from(PNG, 'base64'))
  const { media } = fake.requests.at(-1) ?? {}
  expect(media).toMatchObject({ prompt: 'A red kite', count: 2, quality: 'low' })
  const before = fake.requests.length
  expect(await svc(...line)).toEqual(made)
  expect(fake.requests.length).toBe(before)
  expect(await callsOf('gpt-image-2')).toBe(1)
  expect((await svc('image', 'Something else', '--key', 'kite-1')).stderr).toContain('used for another request')
  expect(await svc('image', 'A kite', '--count', 'many')).toMatchObject({ code: 2 })
  expect(JSON.parse((await svc(...line, '--json')).stdout)).toMatchObject({
    files: [`media/${stem}-1.png`, `media/${stem}-2.png`],
    provider: 'openai',
    model: 'gpt-image-2',
    cost_usd: 0.0601,
  })
})

it('svc media reads a text aloud, and writes down a recording of the workspace or of this machine', async () => {
  fake.script({ audio: mp3 })
  const { stdout } = await svc('speak', 'Good morning.', '--voice', 'nova', '--agent', agent)
  const [, name = ''] = /into (media\/speech-[0-9a-f]{12}\.mp3) .*with voice nova/.exec(stdout) ?? []
  expect(await readFile(join(workspace, name))).toEqual(mp3)
  fake.script({ transcript: { text: 'Good\u001b morning.' } })
  expect((await svc('transcribe', name, '--language', 'en')).stdout).toBe('Good\\u001b morning.\n')
  expect(fake.requests.at(-1)?.media?.language).toBe('en')
  const own = join(home, 'talk.mp3')
  await writeFile(own, mp3)
  const before = fake.requests.length
  fake.script({ transcript: { text: 'Good morning.', times } })
  const line = ['transcribe', own, '--upload', '--write', '--key', 'talk-1']
  const written = await svc(...line)
  expect(written.stdout).toMatch(/^Transcribed "(.*)talk.mp3" into "\1talk.srt"\.\n\nGood morning\.\n$/)
  const [, file = ''] = /into "(.*)"/.exec(written.stdout) ?? []
  expect(await readFile(join(workspace, file), 'utf8')).toContain('00:00:01,500\nGood morning.')
  expect(await svc(...line)).toEqual(written)
  expect(fake.requests.length - before).toBe(1)
  expect(await svc('transcribe', join(home, 'nowhere.mp3'), '--upload')).toMatchObject({ code: 2 })
})

it('a request that nobody waits for is made to the end, and its key gets what was made', async () => {
  const before = fake.requests.length
  const { promise: gate, resolve: open } = Promise.withResolvers<object>()
  fake.script(async () => gate)
  const leave = new AbortController()
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'left-1' }
  const body = JSON.stringify({ agent_id: 'assistant', prompt: 'A dot' })
  const first = host.fetch('/api/media/images', { method: 'POST', headers, body, signal: leave.signal })
  first.catch(() => undefined)
  await fake.request(before)
  leave.abort()
  await expect(first).rejects.toThrow()
  // The daemon has noticed once it answers another request.
  await host.json('GET', '/api/media/providers')
  open({})
  const again = await post('images', { prompt: 'A dot' }, 'left-1', 'assistant')
  expect(again).toMatchObject({ status: 200, body: { files: [expect.stringContaining('media/image-')] } })
  // The answer of the route was never stored, as after a crash: it is asked for what it made.
  const file = new DatabaseSync(join(home, 'data', 'svc.db'))
  file.exec("UPDATE core_idempotency SET state = 'open', status = NULL, body = NULL")
  file.close()
  expect((await post('images', { prompt: 'A dot' }, 'left-1', 'assistant')).body).toEqual(again.body)
  expect(fake.requests.length - before).toBe(1)
})

it('what may have been paid for is not asked for again with its key, what was refused is', async () => {
  const before = fake.requests.length
  fake.script({ images: [] })
  const failed = await post('images', { prompt: 'A dot' }, 'cut-1')
  expect(failed.status).toBeGreaterThanOrEqual(500)
  expect((await post('images', { prompt: 'A dot' }, 'cut-1')).status).toBe(failed.status)
  expect(fake.requests.length - before).toBe(1)
  fake.script({ status: 400 })
  expect((await post('images', { prompt: 'A dot' }, 'refused-1')).status).toBeGreaterThanOrEqual(400)
  expect((await post('images', { prompt: 'A dot' }, 'refused-1')).status).toBe(200)
  expect(fake.requests.length - before).toBe(3)
})

it('a request is refused before anything is sent where the agent, its budget or its files do not allow it', async () => {
  const before = fake.requests.length
  const files = await readdir(join(workspace, 'media'))
  const refused = async (what: string, body: object, of?: string) => {
    const { status, body: answer } = await post(what, body, undefined, of)
    return `${status} ${JSON.stringify(answer)}`
  }
  expect(await refused('images', { prompt: 'A dot' }, 'nobody')).toMatch(/^404 .*nobody/)
  expect(await refused('images', { prompt: 'A dot', colour: 'red' })).toMatch(/^400 .*colour/)
  expect(await refused('images', { prompt: 'A dot', count: 5 })).toMatch(/^400 .*at most 4 pictures/)
  expect(await refused('transcriptions', { path: '../config.toml' })).toMatch(/^403 /)
  expect(await refused('transcriptions', { path: 'nowhere.mp3' })).toMatch(/^404 /)
  await host.json('PUT', `/api/budget/agents/${agent}`, { max_cost_per_hour_usd: 0.0001 })
  expect(await refused('speech', { text: 'x'.repeat(100) })).toMatch(/^429 .*hourly budget/)
  await host.json('PUT', `/api/budget/agents/${agent}`, { max_cost_per_hour_usd: 0 })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "resting"\nenabled = false\n' })
  expect(await refused('speech', { text: 'Hello' }, 'resting')).toMatch(/^409 /)
  expect(fake.requests.length).toBe(before)
  expect(await readdir(join(workspace, 'media'))).toEqual(files)
})
