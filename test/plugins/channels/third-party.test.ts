import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { Shown, startPlatformServer } from '../../support/platforms/http.ts'
import type { PlatformServer } from '../../support/platforms/http.ts'
import { turnPlugins } from '../plugin-test.ts'

// A channel that is no part of the repository: written with `svc/channels` alone, installed while the daemon serves.

const TOKEN = 'parley-token-0123456789'
/** More than a step brings on a fast machine would only take time. */
const MAX_MESSAGES = 30

/** The files of the channel. `mark` stands before every answer, and tells the versions apart. */
const files = (version: string, mark: string): Readonly<Record<string, string>> => ({
  'package.json': JSON.stringify({ name: 'svc-channel-parley', version, type: 'module' }),
  'index.ts': `import { defineChannel } from 'svc/channels'
export default defineChannel('${version}', {
  name: 'parley', title: 'Parley', category: 'messaging', description: 'A chat of somebody else',
  load: () => import('./adapter.ts'),
})
`,
  'adapter.ts': `import * as v from 'valibot'
import { ApiClient, defineAdapter, verifySecret, waitForEnd } from 'svc/channels'
import { readJson, secret } from 'svc/sdk'
const Incoming = v.object({ id: v.string(), user: v.string(), text: v.string() })
export default defineAdapter({
  config: v.object({ token: secret(v.string()), base_url: v.pipe(v.string(), v.url()) }),
  capabilities: {
    dialect: 'plain', maxLength: 500, lengthUnit: 'characters', idempotentSend: true,
    rate: { overall: { perSecond: 1000, burst: 1000 } },
  },
  async open(link) {
    const background = waitForEnd(link)
    const { token, base_url } = link.config
    const api = new ApiClient(link, { system: 'parley', authenticate: () => ({ authorization: token }) })
    return {
      closed: background.closed,
      [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
      send: ({ id, to, text }) =>
        api.json(base_url + '/messages', { json: { key: id, to: to.chatId, text: '${mark}' + text } },
          v.object({ id: v.string() }), 'the sent message'),
      async webhook(request) {
        verifySecret(request.header('x-parley-token'), token)
        const { id, user, text } = v.parse(Incoming, readJson(new TextDecoder().decode(request.body)))
        await link.receive({
          id, text, chat: { id: user, kind: 'direct' }, sender: { id: user, name: user }, attachments: [],
          mentionsBot: true, sentAt: new Date(link.now()).toISOString(),
        })
        return { status: 200 }
      },
    }
  },
  probe: async () => ({ account: 'parley' }),
})
`,
})

let root: string
let home: string
let host: TestHost
let server: PlatformServer
const shown = new Shown()

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-third-party-'))
  home = join(root, 'home')
  await mkdir(join(home, 'plugins'), { recursive: true, mode: 0o700 })
  // A model that repeats what it is told.
  await cp(new URL('../../../playground/plugins/parrot.ts', import.meta.url), join(home, 'plugins', 'parrot.ts'))
  server = await startPlatformServer(({ json, headers }) => {
    const { key, to, text } = json as { key: string; to: string; text: string }
    if (headers.authorization !== TOKEN) return { status: 401 }
    const message = shown.show({ id: `p-${shown.sent.length}`, chatId: to, text, files: [], buttons: [], key })
    return { status: 200, body: { id: message.id } }
  })
  host = await startHost({
    plugins: [...turnPlugins, 'settings', 'files', 'channels', 'plugin-admin'],
    home,
    memory: true,
    config: {
      default_provider: 'parrot',
      default_model: 'grey',
      plugins: { watch: false },
      channels: {
        parley: {
          token: TOKEN,
          base_url: server.origin,
          agent_name: 'echo',
          allowed_users: ['ada'],
          rate_limit_per_user: 0,
        },
      },
    },
  })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "echo"' })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  await rm(root, { recursive: true, force: true })
})

async function svc(...words: string[]): Promise<void> {
  const { code, stderr } = await runHere(['plugin', ...words, '--home', home])
  expect([code, stderr]).toEqual([0, ''])
}
async function write(version: string, mark: string): Promise<string> {
  const folder = join(root, version)
  await mkdir(folder)
  for (const [name, text] of Object.entries(files(version, mark))) await writeFile(join(folder, name), text)
  return folder
}
/** Brings a message to the webhook once. Whether it was taken; what was not stays with the platform. */
async function deliver(id: string): Promise<boolean> {
  const body = JSON.stringify({ id, user: 'ada', text: id })
  const headers = { 'content-type': 'application/json', 'x-parley-token': TOKEN }
  const response = await host.fetch('/api/channels/parley/webhook', { method: 'POST', headers, body })
  await response.text()
  return response.status === 200
}
/** Sends messages, each until it is taken, while `work` goes on, and one after it unless the channel is gone then. */
async function underTraffic(step: string, work: Promise<void>, isGone = false): Promise<readonly string[]> {
  const state = { isOver: false }
  const over = work.finally(() => {
    state.isOver = true
  })
  const taken: string[] = []
  const send = async (id: string): Promise<void> => {
    while (!(await deliver(id))) {
      if (isGone && state.isOver) return
      await setImmediate()
    }
    taken.push(id)
  }
  for (let at = 0; at < MAX_MESSAGES && !state.isOver; at++) await send(`${step}-${at}`)
  await over
  if (!isGone) await send(`${step}-last`)
  return taken
}

it('is installed, used, updated, removed and installed again under traffic, and answers every message once', async () => {
  expect((await host.json('GET', '/api/channels/parley')).status).toBe(404)
  const first = await write('1.0.0', '')
  const second = await write('1.1.0', 'new: ')
  const taken = [...(await underTraffic('install', svc('add', first, '--yes')))]
  taken.push(...(await underTraffic('update', svc('add', second, '--yes', '--update'))))
  expect((await shown.waitForSent(taken.length)).at(-1)?.text).toBe(`new: ${taken.at(-1)}`)
  taken.push(...(await underTraffic('remove', svc('remove', 'channel-parley'), true)))
  expect((await host.json('GET', '/api/channels/parley')).status).toBe(404)
  expect((await host.json('GET', '/api/channels')).status).toBe(200)
  // What was taken and not yet answered is answered by the next channel of this name.
  taken.push(...(await underTraffic('again', svc('add', second, '--yes'))))
  const sent = (await shown.waitForSent(taken.length)).map(({ text }) => text.replace('new: ', ''))
  expect(sent).toEqual(taken)
})
