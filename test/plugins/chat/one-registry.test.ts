import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { FakeWebhook } from '../../support/platforms/webhook.ts'
import { turnPlugins } from '../plugin-test.ts'

/** Slash commands are one registry, which plugins add to: over REST, the WebSocket, a chat and the command line. */
const dice = fileURLToPath(new URL('../channels/dice-commands', import.meta.url))
let home: string
let host: TestHost
let platform: FakeWebhook
let agent = ''
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-commands-'))
  platform = await FakeWebhook.start()
  const account = { ...platform.config, agent_name: 'echo', operators: [platform.person], rate_limit_per_user: 0 }
  host = await startHost({
    home,
    plugins: [...turnPlugins, 'providers/builtin', 'system', 'approvals', 'channels', 'channels/webhook', dice],
    config: { default_provider: 'builtin', channels: { webhook: account } },
  })
  const made = await host.json('POST', '/api/agents', { manifest_toml: 'name = "echo"\n' })
  agent = made.body.agent_id
  platform.setWebhook(async ({ headers, body }) => {
    const init = { method: 'POST', headers, body: new Uint8Array(body) }
    const answer = await host.fetch('/api/channels/webhook/webhook', init)
    return { status: answer.status, body: await answer.text() }
  })
  await eventually(async () => {
    const { status } = (await host.json('GET', '/api/channels/webhook')).body
    expect(status.state).toBe('connected')
  })
})
afterAll(async () => {
  await host?.[Symbol.asyncDispose]()
  await platform?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

const rest = async (command: string): Promise<string> =>
  (await host.json('POST', `/api/agents/${agent}/commands`, { command })).body.content
const socket = (command: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const opened = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${agent}/ws`)
    opened.addEventListener('error', () => reject(new Error('the socket failed')))
    opened.addEventListener('message', ({ data }) => {
      const frame = JSON.parse(String(data))
      if (frame.type === 'connected') opened.send(JSON.stringify({ type: 'message', content: command }))
      if (frame.type !== 'response' && frame.type !== 'error') return
      opened.close()
      resolve(frame.content)
    })
  })
const chat = async (command: string): Promise<string> => {
  const count = platform.sent.length
  await platform.deliver({ text: command })
  await platform.waitForSent(count + 1)
  return platform.sent.at(-1)?.text ?? ''
}
const line = async (command: string): Promise<string> =>
  (await runHere(['chat', 'echo', '--message', command, '--home', home])).stdout.trimEnd()

it.each<[string, (command: string) => Promise<string>]>([
  ['REST', rest],
  ['the WebSocket', socket],
  ['a chat', chat],
  ['the command line', line],
])('%s knows the commands of svc and of plugins', async (_name, run) => {
  expect(await run('/dice six')).toBe('It rolls: six')
  expect(await run('/roll-dice again')).toBe('It rolls: again')
  expect(await run('/usage')).toContain('This session: ')
  expect(await run('/model')).toContain('offline by builtin')
  expect(await run('/providers')).toContain('builtin')
  expect(await run('/models builtin')).toContain('offline')
  expect(await run('/think on')).toBe('Extended thinking is on for models that can.')
  expect(await run('/think loud')).toBe('Say /think on or /think off.')
  expect(await run('/drop')).toContain('has failed')
  const help = await run('/help')
  for (const name of ['new', 'compact', 'model', 'stop', 'usage', 'think', 'models', 'providers', 'dice'])
    expect(help).toContain(`/${name}`)
})

it('a command of the command line alone is known there, and nowhere else', async () => {
  expect(await line('/coin')).toBe('Heads.')
  expect(await line('/help')).toContain('/coin: tosses a coin')
  for (const run of [rest, socket]) expect(await run('/coin')).toContain('Unknown command /coin')
  // In a chat whatever is no command goes to the agent.
  expect(await chat('/coin')).not.toContain('Heads.')
  expect(await rest('/help')).not.toContain('/coin')
})

it('lists them, and reads one with or without the slash and by another name', async () => {
  const { commands } = (await host.json('GET', '/api/commands')).body
  const names = commands.map(({ name }: { name: string }) => name)
  expect(names).toEqual(expect.arrayContaining(['new', 'compact', 'model', 'stop', 'usage', 'think', 'models', 'dice']))
  for (const name of ['dice', '%2Fdice', 'roll-dice'])
    expect((await host.json('GET', `/api/commands/${name}`)).body).toMatchObject({ cmd: '/dice', name: 'dice' })
  expect((await host.json('GET', '/api/commands/dices')).body.error.message).toContain('did you mean')
})

it('a chat is answered by the agent of its most specific binding, and bindings are removed by their place', async () => {
  const bind = async (name: string, match_rule: object): Promise<void> => {
    await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n` })
    expect(await host.json('POST', '/api/bindings', { agent: name, match_rule })).toMatchObject({
      status: 201,
      body: { status: 'created' },
    })
  }
  const answering = async (): Promise<string | undefined> => /Agent: (\S+)/.exec(await chat('/status'))?.[1]
  await bind('of-person', { peer_id: platform.person })
  await bind('of-channel', { channel: 'webhook' })
  expect(await answering()).toBe('of-person')
  expect((await host.json('GET', '/api/bindings')).body).toEqual({
    bindings: [
      { agent: 'of-person', match_rule: { peer_id: platform.person } },
      { agent: 'of-channel', match_rule: { channel: 'webhook' } },
    ],
  })
  expect(await host.json('DELETE', '/api/bindings/0')).toMatchObject({ status: 200, body: { status: 'removed' } })
  expect(await answering()).toBe('of-channel')
  expect((await host.json('DELETE', '/api/bindings/1')).status).toBe(404)
  expect((await host.json('DELETE', '/api/bindings/0')).status).toBe(200)
  expect(await answering()).toBe('echo')
})
