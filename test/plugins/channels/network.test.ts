import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { FakePlatform } from './platform.ts'

const server = createServer((_request, response) => void response.end('here'))
let local: string
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  local = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
})

it('only an account of config.toml reaches private addresses', async () => {
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
  const openedByApi = platform.nextOpen()
  expect((await configure({})).status).toBe(200)
  const ofApi = await openedByApi
  expect(ofApi.accountId).toBe('of_api')
  await expect(ofApi.fetch(local)).rejects.toMatchObject({ name: 'Refusal', code: 'forbidden' })
  await expect(ofApi.webSocket(local.replace('http', 'ws'))).rejects.toMatchObject({ code: 'forbidden' })
})
