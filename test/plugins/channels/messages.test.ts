import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { turnPlugins } from '../plugin-test.ts'
import { ChatPlatform } from './chat-platform.ts'

let test: PluginTest
let platform: ChatPlatform
beforeAll(async () => {
  platform = new ChatPlatform()
  platform.install()
  test = await startPlugin({
    plugin: new URL('./test-channel', import.meta.url),
    builtIns: [...turnPlugins, 'settings', 'approvals', 'files', 'channels'],
    config: { channels: { test_chat: { agent_name: 'helper', allowed_users: ['ada'], operators: ['olga'] } } },
  })
  await test.spawn('helper')
  await test.request('POST', '/api/channels/reload')
  await platform.connected()
})
afterAll(() => test[Symbol.asyncDispose]())

describe('a message', () => {
  it('is answered by the agent of the account', async () => {
    test.model.answer('Hello Ada.')
    await platform.write('Good morning')
    expect(await platform.texts(1)).toEqual(['Hello Ada.'])
  })
})
