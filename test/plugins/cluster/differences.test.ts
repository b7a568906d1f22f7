import type { DaemonClient } from 'svc/cli'
import check from '../../../plugins/cluster/cli/check.ts'
import { expect, it } from 'vitest'
import type { Daemon } from '../../../core/internal.ts'
import { Differences } from '../../../plugins/cluster/differences.ts'

type Plugins = ReturnType<Daemon['plugins']>
it('svc doctor names what differs also where plugins have problems', async () => {
  const member = {
    id: 'b',
    name: 'web-2',
    host_name: 'h',
    address: null,
    version: '1',
    started_at: '',
    state: 'active',
  }
  const members = [
    { ...member, self: false, seen_secs: 0, owned: {}, problems: ['its files are others'], differences: ['api_key'] },
  ]
  const daemon = { url: '', call: () => Promise.resolve({ shared: true, members }) } as unknown as DaemonClient
  const found = await check({ config: {} as never, env: {}, daemon })
  expect(found).toMatchObject({ state: 'warn', found: 'web-2: its files are others; web-2 differs in api_key' })
})

/** The digests that a daemon with one installed plugin writes. */
async function digestsOf(state: Plugins[number]['state'], version = '1.0.0'): Promise<unknown> {
  let written: unknown
  const store = {
    async setDigests(_self: string, _sections: unknown, keys: unknown) {
      written = keys
    },
    sections: async () => [],
    keys: async () => undefined,
  }
  const plugins = (): Plugins => [{ name: 'hello', version, state, source: 'installed' }] as unknown as Plugins
  const configDigests = async () => new Map<string, string>()
  await new Differences({ store, self: 'one', configDigests, plugins, tellChange: () => [] }).write()
  return written
}

it('a plugin that is being replaced does not differ, and one that failed or has another version does', async () => {
  const loaded = await digestsOf('loaded')
  expect([await digestsOf('loading'), await digestsOf('unloading')]).toEqual([loaded, loaded])
  for (const other of [digestsOf('failed'), digestsOf('disabled'), digestsOf('loaded', '2.0.0')])
    expect(await other).not.toEqual(loaded)
})
