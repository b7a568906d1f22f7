import { afterAll, describe, expect, it } from 'vitest'
import { operations, sampleOf } from '../../support/openapi-bodies.ts'
import type { Operation } from '../../support/openapi-bodies.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { operator, pair, startPairing } from '../pairing/devices.ts'

const host = await startPairing({}, { config: { default_provider: 'builtin' } })
afterAll(() => host[Symbol.asyncDispose]())
const call = (method: string, path: string, body?: unknown, who: Record<string, string> = operator) =>
  host.json(method, path, body, who)
const spawn = async (name: string): Promise<string> =>
  (await call('POST', '/api/agents', { manifest_toml: `name = "${name}"\n[model]\nprovider = "builtin"\n` })).body
    .agent_id

interface Entry {
  readonly id: number
  readonly event_type: string
  readonly agent_id: string
  readonly details: string
  readonly actor: string
}
/** Newest first. */
const trail = async (query = ''): Promise<readonly Entry[]> =>
  (await call('GET', `/api/audit/recent?limit=500${query}`)).body.entries.toReversed()
const newest = async (event: string): Promise<Entry | undefined> =>
  (await trail(`&event_type=${event}`)).toSorted((a, b) => b.id - a.id)[0]

describe('the trail', () => {
  it('names who changed an agent, and what, with old and new value', async () => {
    const agent = await spawn('changed')
    expect(
      (
        await call('PATCH', `/api/agents/${agent}/config`, {
          base_url: 'https://elsewhere.example/v1',
          description: 'new',
          temperature: 0.2,
        })
      ).status,
    ).toBe(200)
    const entry = await newest('agent_updated')
    expect(entry?.actor).toBe('API key at 127.0.0.1')
    expect(entry?.details).toContain('model.base_url from unset to "https://elsewhere.example/v1"')
    expect(entry?.details).toContain('description from "" to "new"')
    expect(entry?.details).toContain('model.temperature from 0.7 to 0.2')
  })

  it('masks what is named like a secret, and shortens what is long', async () => {
    const agent = await spawn('masked')
    const toml = [
      `name = "masked"`,
      `author = "${'a'.repeat(1_000)}"`,
      `[model]`,
      `provider = "builtin"`,
      `[tools.web_search]`,
      `api_key = "hunter2-hunter2"`,
      ``,
    ].join('\n')
    expect((await call('PATCH', `/api/agents/${agent}`, { manifest_toml: toml })).status).toBe(200)
    const details = (await newest('agent_updated'))?.details ?? ''
    expect(details).toContain('tools.web_search.api_key from unset to ***')
    expect(details).toContain('(1002 characters)')
    expect(details).not.toContain('hunter2')
    await call('PUT', `/api/memory/agents/${agent}/kv/colour`, { value: 'crimson' })
    const memory = (await trail('&event_type=memory_access')).map((entry) => entry.details).join('\n')
    expect(memory).toContain('set key "colour"')
    expect(memory).not.toContain('crimson')
  })

  it('names a device by its name and id, a person by theirs, and the agent for what it does in a turn', async () => {
    const agent = await spawn('asked')
    const phone = await pair(host, 'phone')
    await call('POST', `/api/agents/${agent}/message`, { message: 'hello' }, phone.bearer)
    await call('POST', `/api/agents/${agent}/sessions`, { label: 'mine' }, phone.bearer)
    const by = `device "phone" (${phone.id}) at 127.0.0.1`
    expect((await newest('agent_message'))?.actor).toBe(by)
    expect((await newest('session_changed'))?.actor).toBe(by)
    await call('DELETE', `/api/pairing/devices/${phone.id}`)
    expect(await newest('pairing_changed')).toMatchObject({ actor: 'API key at 127.0.0.1' })
    expect((await trail('&event_type=daemon_started')).map(({ actor }) => actor)).toEqual([''])
  })

  it('has a row for every change that any route made, with who asked for it', async () => {
    const agent = await spawn('walked')
    const session: string = (await call('POST', `/api/agents/${agent}/sessions`, {})).body.session_id
    const document = (await call('GET', '/api/openapi.json')).body
    const effects = new Map(
      host.app
        .routes()
        .map((route) => [`${route.method} ${route.path.replaceAll(/(?:\*\*)?:\w+/g, '{}')}`, route.effect]),
    )
    const changing = operations(document)
      .filter(({ method, path }) =>
        /^(lasting|conversation)$/.test(effects.get(`${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`) ?? ''),
      )
      // These end the daemon, or this very agent.
      .filter(({ path }) => !/shutdown|restart|restore|reload|^\/api\/agents\/(\{id\}|bulk)$/.test(path))
      .toSorted((a, b) => (a.method === 'DELETE' ? 1 : 0) - (b.method === 'DELETE' ? 1 : 0))
    const made: string[] = []
    const unrecorded: string[] = []
    for (const operation of changing) {
      const path = pathOf(operation)
      const before = (await trail())[0]?.id ?? 0
      const body = bodyOf(operation)
      const response = await host.fetch(path, {
        method: operation.method,
        headers: { ...operator, 'content-type': 'application/json', 'x-filename': 'walked.json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      // JSON-RPC refuses with status 200.
      if (response.status >= 300 || /^\{"jsonrpc":"2\.0",.*"error":\{/.test(text)) continue
      made.push(`${operation.method} ${operation.path}`)
      const rows = (await trail()).filter(({ id }) => id > before)
      if (!rows.some(({ actor }) => actor === 'API key at 127.0.0.1'))
        unrecorded.push(`${operation.method} ${operation.path}`)
    }
    // Each of these changes nothing here.
    expect(unrecorded).toEqual([
      // The command of the example only shows something.
      'POST /api/agents/{id}/commands',
      // The conversation is too short to compact.
      'POST /api/agents/{id}/session/compact',
      // Nothing runs that could be stopped.
      'POST /api/agents/{id}/stop',
      // A test of a provider leaves nothing behind.
      'POST /api/sessions/{id}/compact',
      // The example lists tools.
      'POST /mcp',
    ])
    expect(made).toEqual(
      expect.arrayContaining([
        'POST /api/agents/{id}/message',
        'POST /api/agents/{id}/message/stream',
        'POST /api/agents/{id}/upload',
        'POST /api/agents/{id}/sessions/{session_id}/switch',
        'PUT /api/sessions/{id}/label',
      ]),
    )
    expect(made.length).toBeGreaterThan(40)
    expect(await call('GET', '/api/audit/verify')).toMatchObject({ body: { status: 'valid' } })
    host.defects()

    function pathOf({ path }: Operation): string {
      return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
        if (name === 'session_id') return session
        if (name === 'id') return path.startsWith('/api/sessions/') ? session : agent
        if (name === 'name') return path.includes('/providers/') ? 'groq' : 'x'
        return name === 'filename' && path.includes('/files/') ? 'notes.md' : name === 'key' ? 'colour' : 'x'
      })
    }
    function bodyOf({ body, example, path }: Operation): unknown {
      if (path.endsWith('/skills') || path.endsWith('/mcp_servers')) return []
      if (path.endsWith('/config/set')) return { key: 'log_level', value: 'debug' }
      if (path.endsWith('/config')) return { description: 'walked' }
      if (path.endsWith('/update')) return { description: 'walked too' }
      if (path.endsWith('/identity')) return { emoji: 'x' }
      if (path.endsWith('/import')) return { kv: {} }
      if (path.endsWith('/upload')) return 'the bytes of a file'
      if (example !== undefined) return example
      return body ? sampleOf(body, '', (name) => (name === 'agent_id' ? agent : undefined)) : undefined
    }
  })

  it('names who made, started, stopped and killed agents, one by one and in bulk', async () => {
    const phone = await pair(host, 'bulky')
    const toml = (name: string): string => `name = "${name}"\n[model]\nprovider = "builtin"\n`
    const one = await spawn('alone')
    const made = await call('POST', '/api/agents/bulk', {
      agents: [{ manifest_toml: toml('bulk-1') }, { manifest_toml: toml('bulk-2') }],
    })
    const ids: readonly string[] = made.body.results.map(({ agent_id: id }: { agent_id: string }) => id)
    expect(ids).toHaveLength(2)
    for (const [method, path, body, event, of] of [
      ['POST', '/api/agents/bulk/stop', { agent_ids: ids }, undefined, ids],
      ['POST', '/api/agents/bulk/start', { agent_ids: ids }, undefined, ids],
      ['DELETE', '/api/agents/bulk', { agent_ids: ids }, 'agent_killed', ids],
      ['DELETE', `/api/agents/${one}`, undefined, 'agent_killed', [one]],
    ] as const) {
      expect([path, (await call(method, path, body, phone.bearer)).status]).toEqual([path, 403])
      const before = Math.max(0, ...(await trail()).map(({ id }) => id))
      expect([path, (await call(method, path, body)).status]).toEqual([path, 200])
      const rows = (await trail()).filter(({ id }) => id > before)
      expect([path, new Set(rows.map(({ actor }) => actor))]).toEqual([path, new Set(['API key at 127.0.0.1'])])
      for (const id of of)
        expect([
          path,
          rows.some((row) => row.agent_id === id && (event === undefined || row.event_type === event)),
        ]).toEqual([path, true])
    }
  })

  it('has a row also for a route that records nothing itself, as one of somebody else may', async () => {
    await using folder = await temporaryFolder()
    const route = `ctx.routes.add({
      method: 'POST', path: '/api/careless', summary: 'Forgets', auth: 'bearer', cost: 1,
      returns: v.object({}), handle: () => ({}),
    })`
    await writePlugin(folder.path, pluginText('careless', { setup: `${route}; return {}` }))
    await host.app.host.load(folder.path)
    expect((await call('POST', '/api/careless')).status).toBe(200)
    expect((await trail())[0]).toMatchObject({ actor: 'API key at 127.0.0.1', details: 'POST /api/careless done' })
  })
})
