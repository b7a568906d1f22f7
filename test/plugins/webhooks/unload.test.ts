import { startPlugin } from 'svc/testing'
import { expect, it } from 'vitest'
import { turnPlugins } from '../plugin-test.ts'

it('the plugin can be unloaded while it looks for its first deliveries', async () => {
  await using test = await startPlugin({
    plugin: new URL('../../../plugins/webhooks/', import.meta.url),
    builtIns: turnPlugins,
    config: { outbound: { allow: ['127.0.0.1'] } },
  })
  const subscription = { name: 'first', url: 'http://127.0.0.1:9/', events: ['all'] }
  expect((await test.request('POST', '/api/webhooks', subscription)).status).toBe(201)
  await test.unload()
  expect(test.log.filter((line) => line.includes('work for a webhook failed'))).toEqual([])
})
