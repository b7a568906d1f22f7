import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { toConfig } from '../../support/chat-stage.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { fixture } from './stage.ts'

const KEY = 'the-key-of-the-inspector'
const inspector = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/inspector-cli/build/index.js', import.meta.url),
)
let fake: FakeProvider
let host: TestHost
beforeAll(async () => {
  fake = await startFakeProvider()
  host = await startHost({ config: toConfig(fake, { api_key: KEY, plugins: { paths: [fixture] } }) })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})

async function inspect(key: string, method: string, ...more: readonly string[]): Promise<unknown> {
  const target = [`${host.url}/mcp`, '--transport', 'http', '--header', `Authorization: Bearer ${key}`]
  const args = [inspector, ...target, '--method', method, ...more]
  // The inspector reads its own package.json from here.
  const cwd = fileURLToPath(new URL('.', `file://${inspector}`))
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd, timeout: 30_000 })
  return JSON.parse(stdout)
}

test('the Inspector lists and calls with the key, and is refused with another', async () => {
  const [tools, answer, resources, prompts, refused] = await Promise.all([
    inspect(KEY, 'tools/list'),
    inspect(KEY, 'tools/call', '--tool-name', 'test_simple_text'),
    inspect(KEY, 'resources/list'),
    inspect(KEY, 'prompts/list'),
    inspect('another', 'tools/list').catch((error: { stderr: string }) => error.stderr),
  ])
  expect(tools).toMatchObject({
    tools: expect.arrayContaining([expect.objectContaining({ name: 'svc_agent_assistant' })]) as unknown,
  })
  expect(answer).toMatchObject({
    content: [{ type: 'text', text: 'This is a simple text response for testing.' }],
  })
  expect(resources).toMatchObject({
    resources: expect.arrayContaining([expect.objectContaining({ uri: 'svc://agents' })]) as unknown,
  })
  expect(prompts).toMatchObject({
    prompts: expect.arrayContaining([expect.objectContaining({ name: 'test_simple_prompt' })]) as unknown,
  })
  expect(refused).toMatch(/401|unauthorized/i)
})
