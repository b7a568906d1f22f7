import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { root } from '../../architecture/sources.ts'
import { handPlugins } from '../hands/stage.ts'

export interface Site extends AsyncDisposable {
  readonly url: string
  readonly host: string
  /** Method and path of each request, upgrades included. */
  readonly seen: string[]
}
type Page = (request: IncomingMessage, response: ServerResponse) => string | void
/** Serves pages at an address of this machine. What has no page is an empty one. */
export async function openSite(address: string, pages: Readonly<Record<string, Page>> = {}): Promise<Site> {
  const seen: string[] = []
  const server: Server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site.test')
    seen.push(`${request.method} ${request.url}`)
    const text = pages[pathname] ? pages[pathname](request, response) : ''
    if (response.headersSent || response.writableEnded || text === undefined) return
    if (!response.hasHeader('content-type')) response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(text)
  })
  server.on('connection', () => seen.push('connection'))
  await once(server.listen(0, address), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${address}:${port}`,
    host: `${address}:${port}`,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}

/** The addresses that agents may reach; every other address of this machine is as private as always. */
export const OPEN = '127.0.0.2'
export const OTHER = '127.0.0.3'

export const startBrowser = (settings: Readonly<Record<string, unknown>>): Promise<PluginTest> =>
  startPlugin({
    plugin: join(root, 'plugins/browser'),
    builtIns: [...handPlugins, 'hands'],
    fetch: 'network',
    config: {
      outbound: { allow: [OPEN, OTHER] },
      approvals: { policy: 'never' },
      plugins: { browser: settings },
    },
  })
export const spawnAgent = (test: PluginTest, name: string, network: readonly string[]): Promise<string> =>
  test.spawn(name, `[capabilities]\ntools = ["*"]\nnetwork = ${JSON.stringify(network)}`)
