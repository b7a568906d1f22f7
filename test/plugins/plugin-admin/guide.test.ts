import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ManualTimer } from '../../../core/jobs/manual-timer.ts'
import { runHere } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { Shown, startPlatformServer } from '../../support/platforms/http.ts'
import type { PlatformServer } from '../../support/platforms/http.ts'
import { turnPlugins } from '../plugin-test.ts'

// The examples of docs/plugins.md, as a reader would save them.

const TOKEN = 'a-long-secret'
const workflowPlugins = ['queue', 'approvals', 'workflows']
const FILE = /^```(?:ts|js|html)\n(?:\/\/|<!--) ~\/\.svc\/plugins\/(\S+)(?: -->)?\n(.*?)^```$/gms

let home: string
let host: TestHost
let server: PlatformServer
const shown = new Shown()
const timer = new ManualTimer(0)

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-guide-'))
  const guide = await readFile(new URL('../../../docs/plugins.md', import.meta.url), 'utf8')
  for (const [, name = '', text = ''] of guide.matchAll(FILE)) {
    // The guide says so where it adds the commands.
    const file = join(home, 'plugins', name === 'hello.ts' ? 'hello/index.ts' : name)
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeFile(file, text)
  }
  server = await startPlatformServer(({ json, headers }) => {
    const { key, chat, text } = json as { key: string; chat: string; text: string }
    if (headers.authorization !== `Bearer ${TOKEN}`) return { status: 401 }
    const id = `p-${shown.sent.length}`
    shown.show({ id, chatId: chat, text, files: [], buttons: [], key })
    return { status: 200, body: { id } }
  })
  const account = { token: TOKEN, base_url: server.origin, agent_name: 'ada', allowed_users: ['eve'] }
  host = await startHost({
    plugins: [...turnPlugins, 'settings', 'files', 'channels', 'webchat', 'plugin-admin', ...workflowPlugins],
    home,
    memory: true,
    jobTimer: (plugin) => (plugin === 'notes' ? timer : new ManualTimer(0)),
    config: {
      default_provider: 'echo',
      default_model: 'plain',
      plugins: { hello: { greeting: 'Welcome' }, notes: { keep: 2 } },
      channels: { parley: account },
    },
  })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "ada"' })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

it('loads every example', async () => {
  const { plugins } = (await host.json('GET', '/api/plugins')).body
  const own = plugins.filter(({ source }: { source: string }) => source !== 'built-in')
  const states = own.map(({ name, state, error }: Record<string, unknown>) => `${name} ${state}: ${error}`)
  const names = ['board', 'channel-parley', 'coin', 'dice', 'hello', 'notes', 'provider-echo', 'shout', 'welcome']
  expect(states.toSorted()).toEqual(names.map((name) => `${name} loaded: null`))
})

it('answers a route with a value of the configuration, and a command calls it', async () => {
  expect((await host.json('GET', '/api/hello')).body).toEqual({ text: 'Welcome' })
  expect(await runHere(['hello', '--home', home])).toEqual({ code: 0, stdout: 'Welcome\n', stderr: '' })
})

it('has the kind of step, which a workflow uses', async () => {
  const steps = [{ name: 'loud', type: 'shout/upper', with: { text: '{{input}}!' } }]
  const made = await host.json('POST', '/api/workflows', { name: 'loud', steps })
  expect((await host.json('POST', `/api/workflows/${made.body.workflow_id}/run`, { input: 'hi' })).body).toMatchObject({
    status: 'completed',
    output: 'HI!',
  })
  const wrong = await host.json('POST', '/api/workflows', { name: 'mute', steps: [{ name: 'x', type: 'shout/upper' }] })
  expect([wrong.status, wrong.body.error.message]).toEqual([400, expect.stringContaining('the text is missing')])
})

it('has the slash command', async () => {
  const { body } = await host.json('GET', '/api/commands/coin')
  expect(body).toMatchObject({ cmd: '/coin', description: 'toss a coin' })
})

it('calls the tool', async () => {
  const call = {
    agentId: '00000000-0000-4000-8000-000000000001',
    agentName: 'ada',
    sessionId: '00000000-0000-4000-8000-000000000002',
    turnId: 'turn',
    callId: 'call',
    signal: new AbortController().signal,
  }
  expect((await host.app.callTool('roll_dice', { sides: 6 }, call)).text).toMatch(/^[1-6]$/)
  expect((await host.app.callTool('roll_dice', { sides: 1 }, call)).failed).toBe(true)
})

it('is told by a hook of the agent that was made', () => {
  expect(host.log.join('\n')).toContain('ada is here')
})

it('keeps rows in its table, which the job tidies', async () => {
  for (const text of ['one', 'two', 'three']) await host.json('POST', '/api/notes', { text })
  expect((await host.json('GET', '/api/notes')).body.notes).toHaveLength(3)
  await timer.advance(3_600_000)
  const { notes } = (await host.json('GET', '/api/notes')).body
  expect(notes).toHaveLength(2)
  expect((await host.json('DELETE', `/api/notes/${notes[0].id}`)).status).toBe(200)
  expect((await host.json('GET', '/api/notes')).body.notes).toEqual([notes[1]])
})

it('declares a page with a table of its notes', async () => {
  const { body } = await host.json('GET', '/api/pages/notes/notes')
  expect(body.table).toMatchObject({ route: '/api/notes', rows: 'notes' })
  expect(body.actions.map(({ title }: { title: string }) => title)).toEqual(['Write a note', 'Delete'])
  expect(await (await host.fetch('/pages/notes/notes/index.html')).text()).toContain('/pages/kit/table-page.js')
})

it('serves the page and its script', async () => {
  expect((await host.json('GET', '/api/pages')).body.pages).toContainEqual({
    plugin: 'board',
    title: 'Board',
    group: 'Agents',
    url: '/pages/board/agents/board.html',
  })
  expect(await (await host.fetch('/pages/board/agents/board.html')).text()).toContain('src="board.js"')
  const script = await host.fetch('/pages/board/agents/board.js')
  expect([script.headers.get('content-type'), await script.text()]).toEqual([
    'text/javascript; charset=utf-8',
    expect.stringContaining('/api/agents'),
  ])
})

it('answers a message of the channel with the provider', async () => {
  const send = (token: string) =>
    host.fetch('/api/channels/parley/webhook', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ id: 'm1', user: 'eve', text: 'Good morning' }),
    })
  await expect.poll(async () => (await send('another')).status).toBe(401)
  expect((await send(TOKEN)).status).toBe(200)
  expect((await send(TOKEN)).status).toBe(200)
  expect((await shown.waitForSent(1)).map(({ text, chatId }) => [chatId, text])).toEqual([['eve', 'Good morning']])
})
