import { describe, expect, it } from 'vitest'
import { builtInFolders } from '../../core/host/folders.ts'
import { operator, tokenOf, withForger } from '../plugins/sso/rig.ts'
import type { TestHost } from '../support/host.ts'

interface Caller {
  readonly authorization: string
}
/** One daemon with every built-in plugin, a paired device and somebody who signed in. */
async function start() {
  const { host } = await withForger(
    {},
    { pairing: { enabled: true }, default_provider: 'builtin', webhook_triggers: { enabled: false } },
    { plugins: await builtInFolders() },
  )
  const code = (await host.json('POST', '/api/pairing/request', undefined, operator)).body.pairing_code
  const paired = (await host.json('POST', '/api/pairing/complete', { pairing_code: code, display_name: 'phone' })).body
  const device: Caller = { authorization: `Bearer ${paired.api_key}` }
  const user: Caller = { authorization: `Bearer ${await tokenOf(host)}` }
  const { body: made } = await host.json(
    'POST',
    '/api/agents',
    { manifest_toml: 'name = "ada"\n[model]\nprovider = "builtin"\n' },
    operator,
  )
  return { host, device, deviceId: paired.device_id as string, user, agent: made.agent_id as string }
}

/** What a caller without the key is told where it would take the key. */
const NEEDS_KEY = /cannot do this: use the API key/
async function asks(
  host: TestHost,
  method: string,
  path: string,
  who: Caller,
): Promise<{ status: number; needsKey: boolean }> {
  const gone = new AbortController()
  const response = await host.fetch(path, {
    method,
    headers: { ...who, ...(method === 'GET' ? {} : { 'content-type': 'application/json' }) },
    ...(method === 'GET' ? {} : { body: '{}' }),
    redirect: 'manual',
    signal: gone.signal,
  })
  // A feed has no end.
  const text = response.headers.get('content-type')?.startsWith('text/event-stream') ? '' : await response.text()
  gone.abort()
  return { status: response.status, needsKey: response.status === 403 && NEEDS_KEY.test(text) }
}

describe('who may call what', () => {
  it('follows from the effect of every live route, for a device and for somebody who signed in', async () => {
    const { host, device, user, agent } = await start()
    const routes = host.app
      .routes()
      .filter(({ auth }) => auth === 'bearer')
      // What ends the caller's own credential comes last.
      .toSorted((a, b) => Number(a.path.includes('logout')) - Number(b.path.includes('logout')))
    expect(routes.length).toBeGreaterThan(100)
    const wrong: string[] = []
    for (const [name, who] of Object.entries({ device, user })) {
      for (const { method, path, effect, effectOf } of routes) {
        // Of others: a device removes only itself.
        const wanted = effect === 'lasting' || (effect === 'own' && effectOf !== undefined)
        const at = path.replaceAll(/(?:\*\*)?:(\w+)/g, (_, key: string) => (key === 'id' ? agent : 'x'))
        const { status, needsKey } = await asks(host, method, at, who)
        if (needsKey !== wanted || status === 401)
          wrong.push(`${name}: ${method} ${path} is ${effect}, answered ${status}`)
      }
    }
    expect(wrong).toEqual([])
    expect((await host.json('GET', `/api/agents/${agent}`, undefined, operator)).status).toBe(200)
    host.defects()
  })
})
