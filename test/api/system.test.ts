import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const plugins = ['audit', 'agents', 'kv', 'clock', 'system', 'plugin-admin']
const broken = `import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
export default definePlugin({ name: 'broken', version: '1.0.0', config: v.object({}), setup() { throw new Error('the reason') } })`
const events = async (host: TestHost): Promise<string[]> =>
  (await host.json('GET', '/api/audit/recent?limit=500')).body.entries.map(
    (entry: { event_type: string }) => entry.event_type,
  )

describe('what the daemon says', () => {
  let host: TestHost
  beforeAll(async () => {
    host = await startHost({ plugins })
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
  })

  it('GET /api/health has exactly four fields', async () => {
    const { status, body } = await host.json('GET', '/api/health')
    expect(status).toBe(200)
    expect(body).toEqual({ status: 'ok', uptime_seconds: expect.any(Number), panic_count: 0, restart_count: 0 })
    expect(Number.isInteger(body.uptime_seconds)).toBe(true)
  })

  it('GET /api/health/detail adds agents, database and warnings', async () => {
    const { body } = await host.json('GET', '/api/health/detail')
    expect(body).toMatchObject({
      status: 'ok',
      panic_count: 0,
      restart_count: 0,
      agent_count: 1,
      database: 'connected',
      config_warnings: [],
      failed_plugins: [],
    })
  })

  it('GET /api/status lists the agents and where things are', async () => {
    const { body } = await host.json('GET', '/api/status')
    expect(body).toMatchObject({
      status: 'running',
      agent_count: 1,
      data_dir: expect.stringContaining(host.home),
      default_provider: expect.any(String),
      default_model: expect.any(String),
      command: 'svc',
      uptime_seconds: expect.any(Number),
      agents: [{ name: 'assistant', state: 'Running' }],
    })
    expect(Object.keys(body.agents[0]).sort()).toEqual([
      'created_at',
      'id',
      'model_name',
      'model_provider',
      'name',
      'state',
    ])
  })

  it('GET /api/version has the fields of the interface', async () => {
    const { body } = await host.json('GET', '/api/version')
    expect(Object.keys(body).sort()).toEqual([
      'arch',
      'build_date',
      'git_sha',
      'name',
      'platform',
      'rust_version',
      'version',
    ])
    expect(body).toMatchObject({
      name: 'svc',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      rust_version: `none (node ${process.versions.node})`,
    })
  })

  it('GET /api/versions names the current version and its stability', async () => {
    const { body } = await host.json('GET', '/api/versions')
    expect(body).toMatchObject({
      current: 'v1',
      supported: ['v1'],
      deprecated: [],
      details: [{ version: 'v1', status: 'stable' }],
    })
  })

  it('GET /api/openapi.json describes the routes that are live', async () => {
    const { status, body } = await host.json('GET', '/api/openapi.json')
    expect(status).toBe(200)
    expect(body.openapi).toMatch(/^3\.0\./)
    expect(Object.keys(body.paths)).toEqual(
      expect.arrayContaining(['/api/health', '/api/agents', '/api/agents/{id}', '/api/memory/agents/{id}/kv/{key}']),
    )
    expect(body.paths['/api/agents'].post.responses['201']).toBeDefined()
  })

  it('GET /api/tools lists names, and one tool has its input schema', async () => {
    const { body } = await host.json('GET', '/api/tools')
    expect(body.tools).toEqual(expect.arrayContaining(['kv_delete', 'kv_get', 'kv_list', 'kv_set', 'system_time']))
    expect(body.total).toBe(body.tools.length)
    expect(body.details).toBeUndefined()
    const { details } = (await host.json('GET', '/api/tools?details=true')).body
    expect(details.map(({ name }: { name: string }) => name)).toEqual(body.tools)
    expect(details.find(({ name }: { name: string }) => name === 'kv_set')).toMatchObject({
      description: expect.any(String),
      risk: 'write',
      needs: null,
      source: null,
    })
    expect((await host.json('GET', '/api/tools/kv_set')).body).toMatchObject({
      name: 'kv_set',
      description: expect.any(String),
      risk: 'write',
      input_schema: { type: 'object', required: ['key', 'value'] },
    })
    expect((await host.json('GET', '/api/tools/no_such')).body.error.code).toBe('tool_not_found')
  })

  it('every answer of these rows has the security headers and a request id', async () => {
    for (const path of ['/api/health', '/api/metrics', '/api/tools/none']) {
      const { headers } = await host.fetch(path)
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
    }
  })
})

describe('GET /api/metrics', () => {
  it('is Prometheus text with the names of compatible services', async () => {
    await using host = await startHost({ plugins })
    await host.json('POST', '/api/agents', { manifest_toml: 'name = "idle"\nenabled = false' })
    const response = await host.fetch('/api/metrics')
    const text = await response.text()
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(text).toMatch(/^svc_uptime_seconds \d/m)
    expect(text).toMatch(/^svc_agents_active 1$/m)
    expect(text).toMatch(/^svc_agents 2$/m)
    expect(text).toMatch(/^svc_agents_total 2$/m)
    expect(text).toMatch(/^svc_panics_total 0$/m)
    expect(text).toMatch(/^svc_restarts_total 0$/m)
    expect(text).toMatch(/^svc_info\{version="[^"]+"\} 1$/m)
  })

  it('obeys the linter: help and type for each, _total on counters only, counters never fall', async () => {
    await using host = await startHost({ plugins })
    const read = async (): Promise<string> => (await host.fetch('/api/metrics')).text()
    const first = await read()
    const { body } = await host.json('POST', '/api/agents', { manifest_toml: 'name = "brief"' })
    await host.json('DELETE', `/api/agents/${body.agent_id}`)
    const second = await read()
    const types = [...second.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => ({ name, type }))
    expect(types.length).toBeGreaterThan(5)
    for (const { name, type } of types) {
      expect(second).toContain(`# HELP ${name} `)
      expect(name.endsWith('_total')).toBe(type === 'counter')
    }
    const total = (text: string): number => Number(/^svc_agents_total (\d+)$/m.exec(text)?.[1])
    expect(total(first)).toBe(1)
    expect(total(second)).toBe(2)
    expect(second).toMatch(/^svc_agents 1$/m)
  })
})

describe('with a key', () => {
  it('only the health check and the readiness for a load balancer are public', async () => {
    await using host = await startHost({ plugins, config: { api_key: 'a-key-of-the-operator' } })
    const { paths } = (
      await host.json('GET', '/api/openapi.json', undefined, { authorization: 'Bearer a-key-of-the-operator' })
    ).body
    for (const path of ['/api/health', '/api/ready']) expect((await host.fetch(path)).status).toBe(200)
    for (const [path, methods] of Object.entries<object>(paths)) {
      for (const method of Object.keys(methods)) {
        if (path === '/api/health' || path === '/api/ready') continue
        const target = path.replace('{id}', '00000000-0000-4000-8000-000000000000').replace(/\{\w+\}/g, 'x')
        expect([method, path, (await host.fetch(target, { method: method.toUpperCase() })).status]).toEqual([
          method,
          path,
          401,
        ])
      }
    }
  })
})

describe('plugins', () => {
  let home: string
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-system-'))
  })
  afterEach(async () => {
    await rm(home, { recursive: true, force: true })
  })

  it('are listed with what they need, give and registered', async () => {
    await using host = await startHost({ plugins, home })
    const { body } = await host.json('GET', '/api/plugins')
    expect(body.total).toBe(plugins.length)
    expect(body.plugins.find((plugin: { name: string }) => plugin.name === 'kv')).toEqual({
      name: 'kv',
      display_name: 'Kv',
      version: '1.0.0',
      state: 'loaded',
      source: 'built-in',
      path: null,
      enabled: true,
      requires: ['agents', 'audit'],
      provides: ['kv'],
      ledger_size: expect.any(Number),
      registered: expect.objectContaining({ tools: expect.arrayContaining(['kv_set']) }),
      reloads: 0,
      isolation: 'none',
      access: 'built-in',
      permissions: ['service:agents', 'service:audit'],
      error: null,
    })
    const one = (await host.json('GET', '/api/plugins/kv')).body
    expect(one.ledger).toHaveLength(one.ledger_size)
    expect(one.ledger).toContainEqual({ kind: 'tool', label: 'kv_set' })
    expect((await host.json('GET', '/api/plugins/none')).body.error.code).toBe('plugin_not_found')
  })

  it('one that failed is told of, and the daemon is well', async () => {
    const { mkdir, writeFile } = await import('node:fs/promises')
    await mkdir(join(home, 'plugins', 'broken'), { recursive: true })
    await writeFile(join(home, 'plugins', 'broken', 'index.ts'), broken)
    await using host = await startHost({ plugins, home })
    host.defects()
    expect((await host.json('GET', '/api/health')).body.status).toBe('ok')
    expect((await host.json('GET', '/api/health/detail')).body.failed_plugins).toEqual([
      { name: 'broken', state: 'failed', reason: expect.stringContaining('the reason') },
    ])
    expect((await host.json('GET', '/api/plugins/broken')).body).toMatchObject({
      state: 'failed',
      enabled: true,
      ledger: [],
    })
    const reload = await host.json('POST', '/api/plugins/broken/reload')
    expect([reload.status, reload.body.error.code]).toEqual([409, 'conflict'])
    expect(reload.body.error.message).toContain('the reason')
    host.defects()
  })

  it('one is reloaded before the answer', async () => {
    await using host = await startHost({ plugins, home })
    expect(await host.json('POST', '/api/plugins/clock/reload')).toMatchObject({
      status: 200,
      body: { status: 'reloaded', name: 'clock' },
    })
    expect((await host.json('GET', '/api/plugins/clock')).body.reloads).toBe(1)
    expect(await events(host)).toContain('plugin_changed')
  })

  it.each(['plugin-admin', 'audit'])('%s, which the answer needs, is reloaded after it', async (name) => {
    await using host = await startHost({ plugins, home })
    expect(await host.json('POST', `/api/plugins/${name}/reload`)).toMatchObject({
      status: 202,
      body: { status: 'reloading', name },
    })
    await host.plugin(name, 'loaded', (status) => status.reloads === 1)
    expect((await host.json('GET', '/api/plugins/plugin-admin')).body.state).toBe('loaded')
    expect((await host.json('GET', '/api/agents')).body).toHaveLength(1)
  })

  it('an unknown one cannot be reloaded', async () => {
    await using host = await startHost({ plugins, home })
    expect((await host.json('POST', '/api/plugins/none/reload')).status).toBe(404)
  })
})

describe('the end', () => {
  let home: string
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-system-'))
  })
  afterEach(async () => {
    await rm(home, { recursive: true, force: true })
  })

  it.each([
    ['shutdown', 'shutting_down'],
    ['restart', 'restarting'],
  ])('POST /api/%s answers, then the daemon is asked to end', async (action, status) => {
    await using host = await startHost({ plugins, home })
    const answer = await host.json('POST', `/api/${action}`, undefined, { 'content-type': 'application/json' })
    expect(answer).toMatchObject({ status: 200, body: { status } })
    expect(await host.app.closed).toMatchObject({ kind: action })
  })

  it('a restart is counted, a shutdown is not', async () => {
    for (const action of ['restart', 'shutdown']) {
      await using host = await startHost({ plugins, home })
      await host.json('POST', `/api/${action}`)
      await host.app.closed
    }
    await using host = await startHost({ plugins, home })
    expect((await host.json('GET', '/api/health')).body.restart_count).toBe(1)
    expect(await (await host.fetch('/api/metrics')).text()).toMatch(/^svc_restarts_total 1$/m)
  })

  it('start and stop are in the audit log once each, a reload in between is neither', async () => {
    {
      await using host = await startHost({ plugins, home })
      await host.app.greeted()
      await host.app.daemon.reload('system')
      await host.json('POST', '/api/shutdown')
      await host.app.closed
    }
    await using host = await startHost({ plugins, home })
    await host.app.greeted()
    const seen = await events(host)
    expect(seen.filter((event) => event === 'daemon_started')).toHaveLength(2)
    expect(seen.filter((event) => event === 'daemon_stopped')).toHaveLength(1)
    expect(seen).toContain('config_change')
  })
})
