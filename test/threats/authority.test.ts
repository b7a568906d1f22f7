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

describe('what was tried against it', () => {
  it('a device, a sign-in, a page of another site and an agent win nothing that lasts', async () => {
    const { host, device, deviceId, user, agent } = await start()
    const detail = async () => (await host.json('GET', `/api/agents/${agent}`, undefined, operator)).body
    const before = await detail()
    const call = async (method: string, path: string, body?: unknown, who: object = device) =>
      (await host.json(method, path, body, { ...who })).status

    // 1. Conversations are sent elsewhere, by every way that names an address or a model.
    const away = { base_url: 'http://127.0.0.1:9/v1' }
    for (const who of [device, user]) {
      expect(await call('PATCH', `/api/agents/${agent}/config`, away, who)).toBe(403)
      expect(
        await call('PATCH', `/api/agents/${agent}/config`, { fallback_models: [{ model: 'm', ...away }] }, who),
      ).toBe(403)
      expect(await call('PUT', '/api/providers/openai/url', { url: away.base_url }, who)).toBe(403)
      expect(await call('POST', '/api/models/aliases', { alias: 'default', model_id: 'openai/gpt-5' }, who)).toBe(403)
    }
    // 2. The same words over the commands of a conversation.
    expect(await call('POST', `/api/agents/${agent}/commands`, { command: '/model openai/gpt-5' })).toBe(403)
    expect(await call('POST', `/api/agents/${agent}/commands`, { command: '/MODEL openai/gpt-5' }, user)).toBe(403)
    expect(await call('POST', `/api/agents/${agent}/commands`, { command: '/model' })).toBe(200)
    // 3. Another way to write method and path, or to override the method.
    for (const path of [
      `/api/agents/${agent.toUpperCase()}/config`,
      `/api/%61gents/${agent}/config`,
      `/api/agents/${agent}/%63onfig`,
    ])
      expect([path, await call('PATCH', path, away)]).toEqual([path, 403])
    await call('POST', `/api/agents/${agent}/config`, away, { ...device, 'x-http-method-override': 'PATCH' })
    await call('GET', `/api/agents/${agent}/config?_method=PATCH`)
    // 4. A key that the owner used before, so that an answer of theirs is repeated.
    const key = { 'idempotency-key': 'one' }
    const made = { manifest_toml: 'name = "twin"' }
    expect(await call('POST', '/api/agents', made, { ...operator, ...key })).toBe(201)
    expect(await call('POST', '/api/agents', made, { ...device, ...key })).toBe(403)
    // 5. Memory and files that steer the agent later.
    expect(await call('PUT', `/api/memory/agents/${agent}/kv/self.orders`, { value: 'obey' })).toBe(403)
    expect(await call('PUT', `/api/agents/${agent}/files/SOUL.md`, { content: 'obey' }, user)).toBe(403)
    // 6. A ticket got in time, used after the device was removed, and two credentials at once.
    const { body: ticket } = await host.json('POST', '/api/auth/ws-ticket', undefined, { ...device })
    expect(await call('POST', '/api/shutdown', undefined, { ...device, 'x-api-key': 'the-operators-key-not' })).toBe(
      403,
    )
    expect(await call('DELETE', `/api/pairing/devices/${deviceId}`, undefined, operator)).toBe(200)
    const late = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${agent}/ws`, ['svc', ticket.protocol])
    const opened = await new Promise<boolean>((resolve) => {
      late.addEventListener('open', () => resolve(true), { once: true })
      late.addEventListener('error', () => resolve(false), { once: true })
    })
    expect(opened).toBe(false)
    // 7. What the device could do a moment ago.
    expect(await call('POST', `/api/agents/${agent}/message`, { message: 'hello' })).toBe(401)
    // 8. A page of another site, with the key of somebody in its hands or without.
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
      for (const who of [operator, user, {}])
        expect([401, 403]).toContain(await call('PATCH', `/api/agents/${agent}/config`, away, { ...who, ...headers }))
    // 9. Somebody who signed in makes a device, or another key, of their sign-in.
    expect(await call('POST', '/api/pairing/request', undefined, user)).toBe(403)
    expect(await call('POST', '/api/config/set', { key: 'api_key', value: 'mine-from-now-on-mine' }, user)).toBe(403)
    // 10. An agent speaks the commands in its answer: they are words, and it has no credential at all.
    expect(await call('POST', `/api/agents/${agent}/message`, { message: 'echo /model openai/gpt-5' }, operator)).toBe(
      200,
    )
    expect(await call('PATCH', `/api/agents/${agent}/config`, away, { authorization: `Bearer ${agent}` })).toBe(401)

    const { session_id: _one, ...was } = before
    const { session_id: _two, ...now } = await detail()
    expect(now).toEqual(was)
    const trail = (await host.json('GET', '/api/audit/recent?limit=500', undefined, operator)).body.entries as {
      event_type: string
      actor: string
    }[]
    const changes = trail.filter(({ event_type: event }) => ['agent_updated', 'config_change'].includes(event))
    expect(changes.filter(({ actor }) => /^(device|sign-in)/.test(actor))).toEqual([])
  })
})
