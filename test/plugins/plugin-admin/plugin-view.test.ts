import { join } from 'node:path'
import { expect, it } from 'vitest'
import { toPlugin } from '../../../plugins/plugin-admin/plugin-view.ts'
import { startHost } from '../../support/host.ts'
import { pluginText, writePlugin } from '../../support/plugin-folder.ts'

it('a plugin whose code cannot be read has declared nothing, and channels and providers count as registered', async () => {
  await using host = await startHost({ plugins: [], listen: false, memory: true })
  const setup = `for (const label of ['channel parley', 'provider parrot', 'a cache']) ctx.own(label, () => undefined)
    return {}`
  await host.app.host.load(await writePlugin(join(host.home, 'sound'), pluginText('sound', { setup })))
  await expect(host.app.host.load(await writePlugin(join(host.home, 'broken'), 'export default {'))).rejects.toThrow()
  const found = Object.fromEntries(host.app.daemon.plugins().map((status) => [status.name, toPlugin(status)]))
  expect(found['sound']).toMatchObject({
    access: 'unrestricted',
    registered: { channels: ['parley'], providers: ['parrot'], routes: [] },
  })
  expect(found['broken']).toMatchObject({ access: null, state: 'failed', permissions: [] })
})
