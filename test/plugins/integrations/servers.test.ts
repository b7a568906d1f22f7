import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { auditDetails, turnPlugins, useTool } from '../plugin-test.ts'

const TOKEN = 'tok-4711-nobody-else-has-it'
const packages = fileURLToPath(new URL('../../../node_modules/@modelcontextprotocol', import.meta.url))
const fixtures = fileURLToPath(new URL('../../fixtures/mcp', import.meta.url))
let test: PluginTest
let agent: string

/** A template of the operator that runs a reference server as it is installed here. */
const template = (id: string, args: readonly string[], { env = '', variable = '' } = {}): string => `
id = "${id}"
name = "${id}"
description = "A reference server"
category = "reference"
[transport]
type = "stdio"
command = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify(args)}
env = { ${env} }
${variable}`
const program = (name: string): string => join(packages, `server-${name}`, 'dist/index.js')
const variable = '[[required_env]]\nname = "REFERENCE_KEY"\nlabel = "Key"\nget_url = "https://example.org/keys"\n'

beforeAll(async () => {
  test = await startPlugin({
    plugin: new URL('../../../plugins/integrations/', import.meta.url),
    builtIns: [...turnPlugins, 'mcp', 'plugin-admin', 'system'],
    database: 'file',
    config: {
      plugins: {
        integrations: { trusted: ['everything', 'files', 'graph', 'broken'], read: { prisoner: [fixtures] } },
      },
    },
  })
  const folder = join(test.home, 'integrations')
  await mkdir(folder)
  await writeFile(
    join(folder, 'everything.toml'),
    template('everything', [program('everything'), 'stdio'], { variable }),
  )
  await writeFile(join(folder, 'files.toml'), template('files', [program('filesystem'), '{SERVER_FOLDER}']))
  await writeFile(
    join(folder, 'graph.toml'),
    template('graph', [program('memory')], { env: 'MEMORY_FILE_PATH = "{SERVER_FOLDER}/graph.jsonl"' }),
  )
  await writeFile(join(folder, 'broken.toml'), template('broken', [program('not-installed')], { variable }))
  const confined = join(fixtures, 'confined.pl')
  for (const id of ['prisoner', 'outsider'])
    await writeFile(
      join(folder, `${id}.toml`),
      template(id, [confined]).replace(JSON.stringify(process.execPath), '"perl"'),
    )
  agent = await test.spawn('caller', '[capabilities]\ntools = ["*"]\n')
})
afterAll(() => test?.[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)
const read = async (id: string): Promise<Json> => (await call('GET', `/api/integrations/${id}`)).body
const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
/** Names of secrets in the vault. */
function secrets(): readonly string[] {
  const db = new Sqlite(join(test.home, 'data', 'svc.db'), { readonly: true })
  try {
    return db.prepare("SELECT name FROM core_vault WHERE plugin = 'mcp'").pluck().all() as string[]
  } finally {
    db.close()
  }
}
const tools = async (): Promise<string> => JSON.stringify((await call('GET', '/api/tools')).body)

it('adds the everything server: its tools are listed, an agent calls one, and its secret is never shown', async () => {
  const added = await call('POST', '/api/integrations/add', { type: 'everything', token: TOKEN })
  expect(added).toMatchObject({
    status: 201,
    body: { id: 'everything', status: 'installed', state: 'ready', connected: true, tool_count: expect.any(Number) },
  })
  expect(added.body.tool_count).toBeGreaterThan(5)
  expect((await call('GET', '/api/integrations')).body).toMatchObject({
    installed: [{ id: 'everything', status: 'ready', tool_count: added.body.tool_count }],
    count: 1,
  })
  expect(await useTool(test, agent, 'mcp_everything_echo', { message: 'hello' })).toContain('hello')
  // The program has it; nobody else reads it.
  const { text } = await test.callTool('mcp_everything_get_env', {})
  expect(text).toContain('REFERENCE_KEY')
  const rows = ['', '/everything', '/available', '/health'].map((path) => `/api/integrations${path}`)
  const answers = await Promise.all([...rows, '/api/mcp/servers', '/api/audit/recent'].map((path) => call('GET', path)))
  expect(JSON.stringify([answers, test.log])).not.toContain(TOKEN)
  expect(await call('POST', '/api/integrations/add', { type: 'everything', token: TOKEN })).toMatchObject({
    status: 409,
    body: { error: { message: expect.stringContaining('give another name') } },
  })
})

it('connects again when its program was killed', async () => {
  const { pid } = (await read('everything')).server
  process.kill(pid, 'SIGKILL')
  await eventually(() => expect(isRunning(pid)).toBe(false))
  expect(await call('POST', '/api/integrations/everything/reconnect')).toMatchObject({
    status: 200,
    body: { id: 'everything', status: 'connected', error: null },
  })
  expect((await read('everything')).server.pid).not.toBe(pid)
  await test.advance(60_000)
  const { health } = (await call('GET', '/api/integrations/health')).body
  expect(health).toMatchObject([
    { id: 'everything', status: 'ready', last_ok: expect.any(String), consecutive_failures: 0, reconnecting: false },
  ])
  expect((await test.metrics('svc_integration_checks')).get('svc_integration_checks_total{outcome="ok"}')).toBe(1)
})

it('survives a restart, and its secret with it; its rights come from the file, not from its row', async () => {
  const rows = new Sqlite(join(test.home, 'data', 'svc.db'))
  const [spec] = rows.prepare("SELECT spec FROM mcp_server WHERE name = 'everything'").pluck().all() as string[]
  const forged = JSON.stringify({
    ...JSON.parse(spec ?? ''),
    command: 'perl',
    trust: 'operator',
    credentials: [],
    env: [],
    lazy: true,
    args: [join(fixtures, 'confined.pl')],
  })
  rows.prepare("INSERT INTO mcp_server SELECT 'forged', ?, 'api', 'forged', created_at FROM mcp_server").run(forged)
  rows
    .prepare(
      "INSERT INTO mcp_server SELECT 'broken', ?, 'integration:broken', 'broken', created_at FROM mcp_server WHERE name = 'everything'",
    )
    .run(forged)
  rows.close()
  await test.restart()
  for (const name of ['forged', 'broken']) {
    const { body } = await call('POST', `/api/mcp/servers/${name}/restart`)
    expect([name, JSON.stringify(body)]).toEqual([name, expect.stringContaining('It runs confined')])
    expect((await call('GET', `/api/mcp/servers/${name}`)).body).toMatchObject({ trust: 'confined', connected: false })
    expect((await call('DELETE', `/api/mcp/servers/${name}`)).status).toBe(200)
  }
  expect(await call('POST', '/api/integrations/everything/reconnect')).toMatchObject({ body: { status: 'connected' } })
  expect((await call('GET', '/api/mcp/servers/everything')).body.trust).toBe('operator')
  expect((await test.callTool('mcp_everything_get_env', {})).text).toContain('REFERENCE_KEY')
})

it('adds files and a memory graph, which agents use', async () => {
  for (const type of ['files', 'graph'])
    expect(await call('POST', '/api/integrations/add', { id: type })).toMatchObject({ status: 201 })
  const path = join(test.home, 'mcp', 'files', 'note.txt')
  expect((await test.callTool('mcp_files_write_file', { path, content: 'from an agent' })).failed).toBe(false)
  expect((await test.callTool('mcp_files_read_text_file', { path })).text).toContain('from an agent')
  expect((await test.callTool('mcp_files_read_text_file', { path: '/etc/hostname' })).failed).toBe(true)
  const entities = [{ name: 'Ada', entityType: 'person', observations: ['writes programs'] }]
  await test.callTool('mcp_graph_create_entities', { entities })
  expect((await test.callTool('mcp_graph_search_nodes', { query: 'programs' })).text).toContain('Ada')
})

it('a program runs confined: it sees its own folder and those the file opens to it, and no network', async () => {
  const refused = await call('POST', '/api/integrations/add', { type: 'outsider' })
  expect([refused.status, refused.body.error.message]).toEqual([502, expect.stringContaining('It runs confined')])
  expect((await call('POST', '/api/integrations/add', { type: 'prisoner' })).status).toBe(201)
  expect((await read('prisoner')).server).toMatchObject({ trust: 'confined', network: [] })
  const look = async (at: string): Promise<string> => (await test.callTool('mcp_prisoner_look', { at })).text
  expect(await look(fixtures)).toContain('confined.pl')
  for (const path of [join(test.home, 'data'), join(test.home, 'vault.key'), packages, '/root'])
    expect(await look(path), path).toMatch(/^failed: /)
  expect((await test.callTool('mcp_prisoner_reach', { at: 'http://127.0.0.1/' })).text).toMatch(/failed: | 403 /)
  expect((await call('DELETE', '/api/integrations/prisoner')).status).toBe(200)
})

it('one that does not start leaves nothing', async () => {
  const before = secrets()
  const failed = await call('POST', '/api/integrations/add', { type: 'broken', token: TOKEN })
  expect(failed.status).toBeGreaterThanOrEqual(400)
  expect([failed.status === 500, JSON.stringify(failed.body)]).toEqual([false, expect.not.stringContaining(TOKEN)])
  expect(await call('GET', '/api/integrations/broken')).toMatchObject({ status: 404 })
  expect(await call('GET', '/api/mcp/servers/broken')).toMatchObject({ status: 404 })
  expect(secrets()).toEqual(before)
})

it('what is removed leaves no process, no secret, no server and no tool', async () => {
  const pids = await Promise.all(['everything', 'files', 'graph'].map(async (id) => (await read(id)).server.pid))
  expect([secrets(), await tools()]).toEqual([
    ['server:everything'],
    expect.stringContaining('mcp_files_read_text_file'),
  ])
  expect(await call('DELETE', '/api/integrations/everything')).toEqual(
    expect.objectContaining({ status: 200, body: { id: 'everything', status: 'removed' } }),
  )
  expect(await call('POST', '/api/extensions/uninstall', { name: 'files' })).toMatchObject({ status: 200 })
  // Whoever removes the server removes the integration.
  expect(await call('DELETE', '/api/mcp/servers/graph')).toMatchObject({ status: 200 })
  await eventually(async () => expect((await call('GET', '/api/integrations')).body.count).toBe(0))
  expect(pids.map(isRunning)).toEqual([false, false, false])
  expect(await tools()).not.toContain('mcp_')
  expect([secrets(), (await call('GET', '/api/mcp/servers')).body.total]).toEqual([[], 0])
  expect(await call('GET', '/api/integrations/everything')).toMatchObject({ status: 404 })
  expect((await auditDetails(test, 'integration_changed')).toReversed()).toEqual([
    'integration "everything" (everything) added',
    'integration "files" (files) added',
    'integration "graph" (graph) added',
    'integration "prisoner" (prisoner) added',
    'integration "prisoner" (prisoner) removed',
    'integration "everything" (everything) removed',
    'integration "files" (files) removed',
    'integration "graph" (graph) removed with its MCP server',
  ])
})
