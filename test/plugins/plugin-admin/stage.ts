import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfigInput } from '../../../core/config/schema.ts'
import { startHost } from '../../support/host.ts'
import type { Answer, TestHost } from '../../support/host.ts'
import { startRegistry } from '../../support/plugin-registry.ts'
import type { FakeRegistry } from '../../support/plugin-registry.ts'

export const KEY = 'key-of-the-operator'

/** A daemon with the API key above, and a registry it may reach. */
export interface Stage extends AsyncDisposable {
  readonly host: TestHost
  readonly home: string
  readonly registry: FakeRegistry
  call(method: string, path: string, body?: unknown): Promise<Answer>
  /** Installs and accepts everything. */
  install(body: object): Promise<Answer>
  /** Details of the audit entries about plugins, the latest last. */
  audited(): Promise<readonly string[]>
  /** Writes a file beside the home and returns its path. */
  file(name: string, content: string | Uint8Array): Promise<string>
}

export async function openStage(
  settings: object = {},
  options: { readonly apiKey?: boolean; readonly listen?: boolean } = {},
): Promise<Stage> {
  const root = await mkdtemp(join(tmpdir(), 'svc-plugin-admin-'))
  const home = join(root, 'home')
  const registry = await startRegistry()
  const config: ConfigInput = {
    ...(options.apiKey === false ? {} : { api_key: KEY }),
    outbound: { allow: ['127.0.0.1'] },
    plugins: { watch: false, drain_ms: 500, 'plugin-admin': { registry_url: registry.url, ...settings } },
  }
  const { mkdir } = await import('node:fs/promises')
  await mkdir(home, { mode: 0o700 })
  const plugins = ['audit', 'plugin-admin']
  const host = await startHost({ plugins, home, memory: true, listen: options.listen ?? false, config })
  const headers = options.apiKey === false ? {} : { authorization: `Bearer ${KEY}` }
  const call = (method: string, path: string, body?: unknown): Promise<Answer> => host.json(method, path, body, headers)
  return {
    host,
    home,
    registry,
    call,
    install: (body) => call('POST', '/api/plugins/install', { accept_permissions: true, ...body }),
    async audited() {
      const { body } = await call('GET', '/api/audit/recent?limit=100&event_type=plugin_changed')
      return body.entries.map((entry: { details: string }) => entry.details)
    },
    async file(name, content) {
      const path = join(root, name)
      await writeFile(path, content)
      return path
    },
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]()
      await registry[Symbol.asyncDispose]()
      await rm(root, { recursive: true, force: true })
    },
  }
}

/** The files of a plugin with one route, which answers with its text. */
export function greeter(
  text: string,
  { version = '1.0.0', uses = "{ routes: ['/api/greeter'] }", more = '', apiVersion = '^1.0.0', name = 'greeter' } = {},
): Record<string, string> {
  return {
    'package.json': JSON.stringify({ name: `svc-${name}`, version, type: 'module' }),
    'index.ts': `import * as v from 'valibot'
import { definePlugin, defineRoute } from 'svc/sdk'
export default definePlugin({
  name: '${name}', version: '${version}', apiVersion: '${apiVersion}', config: v.object({}), uses: ${uses},
  setup({ routes, jobs, signal }) {
    routes.add(defineRoute({
      method: 'GET', path: '/api/greeter', summary: 'Greet', auth: 'bearer', effect: 'read', cost: 1,
      returns: v.object({ text: v.string() }), handle: () => ({ text: '${text}' }),
    }))
    ${more}
    return {}
  },
})
`,
  }
}
