import { fileURLToPath } from 'node:url'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

export const fixture = fileURLToPath(new URL('../../fixtures/mcp/server.mjs', import.meta.url))

export const smallFixture = fileURLToPath(new URL('../../fixtures/mcp/server.sh', import.meta.url))

/** A `[[mcp_servers]]` that runs the fixture. */
export const server = (name: string, args: readonly string[] = [], more: object = {}): object => ({
  name,
  command: process.execPath,
  args: [fixture, ...args],
  ...more,
})

export const startMcp = (
  servers: readonly object[] = [],
  settings: object = {},
  config: { readonly plugins?: object; readonly [section: string]: unknown } = {},
  more: object = {},
): Promise<PluginTest> =>
  startPlugin({
    plugin: new URL('../../../plugins/mcp/', import.meta.url),
    builtIns: turnPlugins,
    ...more,
    config: { ...config, mcp_servers: [...servers], plugins: { ...config.plugins, mcp: settings } } as never,
  })

export const viewOf = async (test: PluginTest, name: string): Promise<Json> =>
  (await test.request<Json>('GET', `/api/mcp/servers/${name}`)).body

/** Waits until a server is in a state. */
export const untilState = (test: PluginTest, name: string, state: string): Promise<Json> =>
  eventually(async () => {
    const view = await viewOf(test, name)
    if (view.state !== state) throw new Error(`${name} is ${view.state}: ${view.error}`)
    return view
  })
