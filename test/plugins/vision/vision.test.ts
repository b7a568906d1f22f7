import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { toConfig } from '../../support/chat-stage.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { callTool, turnPlugins } from '../plugin-test.ts'

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
let fake: FakeProvider
let test: PluginTest
let agent = ''
beforeAll(async () => {
  fake = await startFakeProvider()
  test = await startPlugin({
    plugin: new URL('../../../plugins/vision/', import.meta.url),
    builtIns: [...turnPlugins, 'files', 'openai-compatible', 'budgets'],
    fetch: 'network',
    config: toConfig(fake),
  })
  agent = await test.spawn('watcher')
  const folder = join(test.home, 'data', 'workspaces', agent)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'dot.png'), png)
  await writeFile(join(folder, 'fake.png'), 'no picture')
  await writeFile(join(test.home, 'outside.png'), png)
  await symlink(join(test.home, 'outside.png'), join(folder, 'link.png'))
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})

it('shows a picture of the workspace to the model of the agent, and counts what it costs', async () => {
  fake.script({ text: ['A red ', 'dot.'], usage: { prompt_tokens: 300, completion_tokens: 4 } })
  expect(await callTool(test, agent, 'image_analyze', { path: './dot.png', prompt: 'What is it?' })).toEqual({
    text: 'A red dot.',
    failed: false,
  })
  const { messages } = fake.requests.at(-1)?.body ?? {}
  expect(JSON.stringify(messages)).toContain(`data:image/png;base64,${png.toString('base64')}`)
  expect(JSON.stringify(messages)).toContain('What is it?')
  const { body } = await test.request('GET', '/api/usage')
  expect(JSON.stringify(body)).toContain('300')
})

it.each([
  ['fake.png', 'is no PNG'],
  ['nowhere.png', 'No file'],
  ['link.png', 'leads out'],
  ['../outside.png', 'leads out'],
  ['/etc/passwd', 'leads out'],
])('%s is refused, and nothing is sent', async (path, text) => {
  const before = fake.requests.length
  expect(await callTool(test, agent, 'image_analyze', { path })).toMatchObject({
    failed: true,
    text: expect.stringContaining(text),
  })
  expect(fake.requests.length).toBe(before)
})

it('tells what the provider says when its model cannot see', async () => {
  fake.script({
    status: 400,
    body: JSON.stringify({ error: { message: 'This model does not support images.', type: 'invalid_request_error' } }),
  })
  expect(await callTool(test, agent, 'image_analyze', { path: 'dot.png' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('image_analyze'),
  })
})

it('is refused where the budget of the agent has no room for it, and gives back what it set aside', async () => {
  const limit = (tokens: number) =>
    test.request('PUT', `/api/budget/agents/${agent}`, { max_llm_tokens_per_hour: tokens })
  await limit(1000)
  const before = fake.requests.length
  expect(await callTool(test, agent, 'image_analyze', { path: 'dot.png' })).toMatchObject({
    failed: true,
    text: expect.stringContaining('hourly token limit of agent'),
  })
  expect(fake.requests.length).toBe(before)
  await limit(100_000)
  fake.script({ status: 400 }, { text: 'A dot.' })
  expect(await callTool(test, agent, 'image_analyze', { path: 'dot.png' })).toMatchObject({ failed: true })
  expect(await callTool(test, agent, 'image_analyze', { path: 'dot.png' })).toEqual({ text: 'A dot.', failed: false })
  expect((await test.request('GET', `/api/budget/agents/${agent}`)).body).toMatchObject({
    tokens: { reserved: 0 },
    status: 'ok',
  })
  await limit(0)
})
