import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'
import { FakePlatform } from './platform.ts'

const account = (id: string, token: string): string =>
  `[[channels.test_chat]]\naccount_id = "${id}"\ntoken = "${token}"\n`

it('a changed file opens only the accounts that changed, and adds and removes others', async () => {
  await using cleanup = new AsyncDisposableStack()
  const home = await mkdtemp(join(tmpdir(), 'svc-channel-file-'))
  cleanup.defer(() => rm(home, { recursive: true, force: true }))
  const write = (...sections: string[]): Promise<void> => writeFile(join(home, 'config.toml'), sections.join(''))
  await write('log_level = "info"\n')
  const platform = new FakePlatform()
  platform.install()
  await using host = await startHost({
    home,
    memory: true,
    plugins: [...turnPlugins, 'settings', 'channels', fileURLToPath(new URL('./test-channel', import.meta.url))],
  })
  const apply = async (...sections: string[]) => {
    await write(...sections)
    return (await host.json('POST', '/api/config/reload')).body
  }
  const statusOf = () => host.app.daemon.plugins().find(({ name }) => name === 'channels')
  const links = () =>
    platform.links.map(({ accountId, config, signal }) => [accountId, config.token, signal.aborted ? 'ended' : 'open'])

  // The first account of a daemon that had none.
  let opened = platform.nextOpen()
  expect(await apply(account('kept', 'token-1'))).toMatchObject({
    status: 'applied',
    hot_actions_applied: ['channels'],
  })
  await opened
  opened = platform.nextOpen()
  await apply(account('kept', 'token-1'), account('other', 'token-1'))
  await opened
  opened = platform.nextOpen()
  await apply(account('kept', 'token-1'), account('other', 'token-2'))
  await opened
  expect(links()).toEqual([
    ['kept', 'token-1', 'open'],
    ['other', 'token-1', 'ended'],
    ['other', 'token-2', 'open'],
  ])
  await apply(account('kept', 'token-1'), '[channels.test_chta]\ntoken = "x"\n')
  expect(host.log.filter((line) => line.includes('did you mean "test_chat"'))).toHaveLength(1)
  expect(links().map(([, , state]) => state)).toEqual(['open', 'ended', 'ended'])
  expect((await host.json('GET', '/api/channels')).body).toMatchObject({ configured_count: 1 })
  expect(statusOf()).toMatchObject({ reloads: 0 })

  // What the plugin does for all accounts is set up again.
  opened = platform.nextOpen()
  await apply('[plugins.channels]\nmax_accounts = 7\n', account('kept', 'token-1'))
  await opened
  expect(statusOf()).toMatchObject({ reloads: 1 })
  expect(links().map(([, , state]) => state)).toEqual(['ended', 'ended', 'ended', 'open'])
})
