import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { FakePlatform } from './platform.ts'

let home: string
let host: TestHost
const platform = new FakePlatform()
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-channels-'))
  platform.install({ signIn: (link) => platform.signIn(link) })
  host = await startHost({
    home,
    plugins: [...turnPlugins, 'system', 'channels', fileURLToPath(new URL('./test-channel', import.meta.url))],
  })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['channels', ...args, '--home', home])
const configure = (account: string, token = 'abcd') =>
  host.json('POST', '/api/channels/test_chat/configure', { account_id: account, token })

it('lists what is configured, and everything on request', async () => {
  expect((await svc('list')).stdout).toContain('No channel is configured.')
  const all = await svc('list', '--all')
  expect(all.stdout).toMatch(/^NAME +TITLE +CATEGORY +STATE\n/)
  expect(all.stdout).toMatch(/test_chat +Test chat +developer +not configured/)
  expect(all.stdout).toMatch(/signal +Signal +messaging +no adapter/)
  expect(JSON.parse((await svc('list', '--json')).stdout).total).toBe(45)
})

it('shows states, tests, switches and removes an account', async () => {
  const opened = platform.nextOpen()
  await configure('default')
  await opened
  await expect.poll(async () => (await svc('status', 'test_chat')).code).toBe(0)
  expect((await svc('status', 'test_chat')).stdout).toMatch(/state +connected\n.*messages +0 received, 0 sent/s)
  expect(await svc('test', 'test_chat')).toMatchObject({ code: 0, stdout: 'The credentials are accepted: @bot.\n' })
  expect((await svc('test', 'test_chat', '--chat', 'c1')).stdout).toContain('on its way to c1')
  await expect.poll(() => platform.sent.map(({ text }) => text)).toEqual(['This is a test message of svc.'])
  expect((await svc('disable', 'test_chat')).stdout).toBe('test_chat is disabled.\n')
  expect((await svc('status', 'test_chat')).stdout).toMatch(/state +disabled/)
  expect((await svc('enable', 'test_chat')).stdout).toBe('test_chat is enabled and connects.\n')
  await configure('support', 'wrong-token')
  await expect
    .poll(async () => (await runHere(['status', '--home', home])).stdout)
    .toMatch(
      /channel +test_chat connected\n(.*\n)*channel +test_chat \(support\) needs login: the token \*\*\* was refused/,
    )
  await svc('remove', 'test_chat', '--account', 'support')
  expect((await svc('outbox', 'test_chat')).stdout).toBe('test_chat has no such messages.\n')
  expect((await svc('outbox', 'test_chat', '--state', 'sent')).stdout).toContain('This is a test message')
  expect((await svc('remove', 'test_chat')).stdout).toContain('test_chat (default) is removed.')
  expect(await svc('remove', 'test_chat')).toMatchObject({ code: 4, stderr: expect.stringContaining('no account') })
})

it('makes a code for a person', async () => {
  await configure('default')
  const { stdout } = await svc('pair', 'test_chat')
  expect(stdout).toMatch(/^Pairing code: \w{3}-\w{3}\nIt works once, for /)
})

it('shows the code to scan in the terminal, and waits until one is signed in', async () => {
  platform.signIn = async function* () {
    yield { status: 'pending', payload: 'scan-me' }
    yield { status: 'authenticated' }
  }
  await configure('default')
  const { code, stdout } = await svc('login', 'test_chat')
  expect([code, stdout]).toEqual([0, expect.stringContaining('Signed in.')])
})

it('adds, lists and removes bindings', async () => {
  expect((await svc('bindings')).stdout).toContain('There are no bindings.')
  expect(await svc('bindings', 'add', 'nobody')).toMatchObject({ stderr: expect.stringContaining('no agent "nobody"') })
  const agent = (await host.json('GET', '/api/agents')).body[0].name
  await svc('bindings', 'add', agent, '--channel', 'discord', '--guild', '41', '--roles', '4000, 4001')
  await svc('bindings', 'add', agent, '--chat', 'c1', '--thread', 't1', '--peer', 'ada', '--account', 'two')
  expect((await svc('bindings', 'list')).stdout).toMatch(
    /^NUMBER +AGENT +FOR\n0 .*channel discord, guild_id 41, roles 4000 or 4001\n1 .*peer_id ada, channel_id c1, thread_id t1\n$/,
  )
  expect((await svc('bindings', 'remove', '1')).stdout).toBe('Binding 1 is removed.\n')
  expect(await svc('bindings', 'remove', '1')).toMatchObject({ stderr: expect.stringContaining('No binding 1') })
})

it('refuses before it asks for anything: no adapter, fields that are no JSON', async () => {
  expect(await svc('add', 'signal')).toMatchObject({ code: 1, stderr: expect.stringContaining('no adapter') })
  expect(await svc('add', 'test_chat', '--fields', '[]')).toMatchObject({
    stderr: expect.stringContaining('JSON object'),
  })
})
