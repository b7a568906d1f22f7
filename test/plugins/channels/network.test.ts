import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ChannelLink } from 'svc/channels'
import { Refusal } from 'svc/sdk'
import type { PluginNetwork } from 'svc/sdk'
import type { Account } from '../../../plugins/channels/accounts/account.ts'
import { createLink } from '../../../plugins/channels/connections/link.ts'
import type { LinkDeps } from '../../../plugins/channels/connections/link.ts'
import { startHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { FakePlatform } from './platform.ts'

const server = createServer((_request, response) => void response.end('here'))
/** Another service on this machine, which no configuration names. */
const other = createServer((_request, response) => void response.end('secret'))
let local: string
let unnamed: string
const addressOf = (one: typeof server): string => `http://127.0.0.1:${(one.address() as AddressInfo).port}/`
beforeAll(async () => {
  for (const one of [server, other]) await once(one.listen(0, '127.0.0.1'), 'listening')
  local = addressOf(server)
  unnamed = addressOf(other)
})
afterAll(() => {
  for (const one of [server, other]) {
    one.close()
    one.closeAllConnections()
  }
})

/** Starts the smallest program there is. */
const runProgram = ({ startProgram }: Pick<ChannelLink<unknown>, 'startProgram'>) =>
  startProgram({ program: 'true', args: [], folder: tmpdir(), onOutput: () => undefined })

it('only an account of config.toml reaches private addresses, those that it names, and runs programs', async () => {
  const platform = new FakePlatform()
  platform.install()
  await using host = await startHost({
    listen: false,
    memory: true,
    plugins: [...turnPlugins, 'channels', fileURLToPath(new URL('./test-channel', import.meta.url))],
    config: { channels: { test_chat: { token: 'abcd', base_url: local } } },
  })
  const configure = (fields: object) =>
    host.json('POST', '/api/channels/test_chat/configure', { account_id: 'of_api', token: 'abcd', ...fields })
  expect((await configure({ base_url: local })).status).toBe(403)
  const opened = platform.nextOpen()
  await host.json('PUT', '/api/channels/test_chat/enable?account_id=default')
  const ofFile = await opened
  expect(await (await ofFile.fetch(local)).text()).toBe('here')
  // Such as the address of a file in a message, which its sender chose.
  await expect(ofFile.fetch(unnamed)).rejects.toMatchObject({ name: 'Refusal', code: 'forbidden' })
  await expect(ofFile.webSocket(unnamed.replace('http', 'ws'))).rejects.toMatchObject({ code: 'forbidden' })
  expect(await (await runProgram(ofFile)).ended).toMatchObject({ code: 0 })
  const openedByApi = platform.nextOpen()
  expect((await configure({})).status).toBe(200)
  const ofApi = await openedByApi
  expect(ofApi.accountId).toBe('of_api')
  await expect(ofApi.fetch(local)).rejects.toMatchObject({ name: 'Refusal', code: 'forbidden' })
  await expect(ofApi.webSocket(local.replace('http', 'ws'))).rejects.toMatchObject({ code: 'forbidden' })
  await expect(runProgram(ofApi)).rejects.toMatchObject({ code: 'forbidden' })
})

it.each([
  ['http://10.0.0.1:8065/api', 'operator'],
  ['http://10.0.0.1/api', 'guarded'],
  ['http://10.0.0.3/', 'guarded'],
  // Its redirects are guarded then, too.
  ['https://chat.example/api', 'guarded'],
])('an account of the file that names a private and a public server fetches %s the %s way', async (url, way) => {
  const used: string[] = []
  const network = (name: string, admit: (to: string | URL) => Promise<void>) =>
    ({ admit, fetch: async () => void used.push(name) }) as unknown as PluginNetwork
  const guarded = network('guarded', async (to) => {
    if (new URL(to).hostname.startsWith('10.')) throw new Refusal('forbidden', 'a private network')
  })
  const networkOf = () => ({ network: guarded, operator: network('operator', async () => undefined) })
  const config = { base_url: 'http://10.0.0.1:8065', other: 'https://chat.example' }
  const session = {
    config,
    signal: new AbortController().signal,
    receive: async () => undefined,
    heard: () => undefined,
  }
  const deps = { networkOf, spawnOf: () => undefined } as unknown as LinkDeps
  await createLink(deps, { channel: 'test_chat', id: 'default' } as Account, session).fetch(url)
  expect(used).toEqual([way])
})

/** A channel of somebody else, with the adapter of the running test. */
const channelText = (name: string, hosts: string): string => `import { defineChannel } from 'svc/channels'
export default defineChannel('1.0.0', {
  name: '${name}', title: '${name}', category: 'messaging', description: 'A chat of somebody else', ${hosts}
  load: async () => ({ default: Reflect.get(globalThis, Symbol.for('svc.test.adapter')) }),
})
`

it('a channel that is not built in is held to the hosts it declares, and runs no programs', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-channel-hosts-'))
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => rm(home, { recursive: true, force: true }))
  await mkdir(join(home, 'plugins'), { mode: 0o700 })
  await writeFile(join(home, 'plugins', 'near.ts'), channelText('near', `hosts: ['127.0.0.1'],`))
  await writeFile(join(home, 'plugins', 'far.ts'), channelText('far', `hosts: ['chat.example'],`))
  const platform = new FakePlatform()
  platform.install()
  const account = (token: string) => ({ token, base_url: local })
  await using host = await startHost({
    listen: false,
    memory: true,
    home,
    plugins: [...turnPlugins, 'channels'],
    config: { channels: { near: account('near'), far: account('afar') } },
  })
  // One change connects the accounts of the file too.
  const opened = platform.nextOpen()
  await host.json('PUT', '/api/channels/near/enable?account_id=default')
  await opened
  if (platform.links.length < 2) await platform.nextOpen()
  const ofFile = (token: string) => platform.links.find(({ config }) => config.token === token)
  const undeclared = { code: 'forbidden', message: expect.stringContaining(`uses: { hosts: ['127.0.0.1`) as string }
  expect(await (await ofFile('near')?.fetch(local))?.text()).toBe('here')
  await expect(ofFile('afar')?.fetch(local)).rejects.toMatchObject(undeclared)
  const near = ofFile('near')
  if (!near) throw new Error('the account of the file is not open')
  await expect(runProgram(near)).rejects.toMatchObject({ code: 'forbidden' })
  const open = async (channel: string) => {
    const opened = platform.nextOpen()
    const body = { account_id: 'of_api', token: 'abcd' }
    expect((await host.json('POST', `/api/channels/${channel}/configure`, body)).status).toBe(200)
    return await opened
  }
  const far = await open('far')
  await expect(far.fetch(local)).rejects.toMatchObject(undeclared)
  await expect(far.webSocket(local.replace('http', 'ws'))).rejects.toMatchObject(undeclared)
  const { port } = new URL(local)
  await expect(far.connect({ host: '127.0.0.1', port: Number(port) })).rejects.toMatchObject(undeclared)
  // Declared, but private: the API cannot widen what the file alone may.
  await expect((await open('near')).fetch(local)).rejects.toMatchObject({ code: 'forbidden' })
})
