import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { auditDetails } from '../plugin-test.ts'
import { startMcp, viewOf } from './servers.ts'

const fixture = fileURLToPath(new URL('../../fixtures/mcp/confined.pl', import.meta.url))
const SECRET = 'tok-0815-nobody-else-has-it'
let test: PluginTest
beforeAll(async () => {
  test = await startMcp(
    [],
    { start_timeout_secs: 60, error_output_chars: 80, restart_min_ms: 1 },
    {},
    { database: 'file', fetch: 'network' },
  )
})
afterAll(() => test?.[Symbol.asyncDispose]())

const call = (method: string, path: string, body?: unknown) => test.request<Json>(method, path, body)
const add = (body: object) => call('POST', '/api/mcp/servers', body)
const folderOf = (name: string): string => join(test.home, 'mcp', name)
const textOf = async (tool: string, args: object = {}): Promise<string> => (await test.callTool(tool, args)).text

/** A body that runs the fixture from the folder of the server, the only one that its program can read. */
async function body(name: string, more: object = {}, args: readonly string[] = []): Promise<object> {
  await mkdir(folderOf(name), { recursive: true })
  const script = join(folderOf(name), 'server.pl')
  await copyFile(fixture, script)
  return { name, command: 'perl', args: [script, ...args], ...more }
}
/** What is kept of servers: rows and names of secrets. */
function kept(): Json {
  const db = new Sqlite(join(test.home, 'data', 'svc.db'), { readonly: true })
  const column = (query: string) => db.prepare(query).pluck().all()
  try {
    return {
      rows: column('SELECT name FROM mcp_server'),
      secrets: column("SELECT name FROM core_vault WHERE plugin = 'mcp'"),
    }
  } finally {
    db.close()
  }
}
const statusOf: Readonly<Record<string, number>> = { forbidden: 403, invalid_request: 400, mcp_server_failed: 502 }
const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('a server that is added over the API', () => {
  it('is used, changed and removed, and leaves nothing; its credentials reach its program and nobody else', async () => {
    const spec = await body('worker', { env: ['TOKEN'], credentials: { TOKEN: SECRET } })
    const added = await add(spec)
    expect(added).toMatchObject({
      status: 201,
      body: { status: 'added', state: 'connected', origin: 'api', trust: 'confined', env: ['TOKEN'] },
    })
    expect(kept()).toEqual({ rows: ['worker'], secrets: ['server:worker'] })
    expect((await add(spec)).status).toBe(409)
    expect(await textOf('mcp_worker_env')).toContain('TOKEN=***')

    const changed = await call('PUT', '/api/mcp/servers/worker', { timeout_secs: 120, lazy: false })
    expect(changed).toMatchObject({ status: 200, body: { timeout_secs: 120, state: 'connected' } })
    expect(isRunning(added.body.pid)).toBe(false)
    expect(await textOf('mcp_worker_env')).toContain('TOKEN=***')
    // A change that does not work leaves the server as it was.
    expect((await call('PUT', '/api/mcp/servers/worker', { command: 'true', args: [] })).body.error.message).toMatch(
      /^credentials\.TOKEN: entered for another program/,
    )
    const other = { command: 'true', args: [], credentials: { TOKEN: SECRET } }
    expect((await call('PUT', '/api/mcp/servers/worker', other)).status).toBe(502)
    expect(await viewOf(test, 'worker')).toMatchObject({ pid: changed.body.pid, command: 'perl' })
    expect(kept()).toEqual({ rows: ['worker'], secrets: ['server:worker'] })

    const rows = ['/api/mcp/servers', '/api/mcp/servers/worker', '/api/mcp/servers/worker/log', '/api/mcp/tools']
    const answers = await Promise.all([...rows, '/api/audit/recent?limit=100'].map((path) => call('GET', path)))
    expect(JSON.stringify([added, changed, answers, test.log])).not.toContain(SECRET)

    expect((await call('DELETE', '/api/mcp/servers/worker')).body).toEqual({ status: 'removed', name: 'worker' })
    expect(isRunning(changed.body.pid)).toBe(false)
    expect(kept()).toEqual({ rows: [], secrets: [] })
    expect(test.registered().tools).not.toContain('mcp_worker_env')
    expect((await call('DELETE', '/api/mcp/servers/worker')).status).toBe(404)
    const details = (await auditDetails(test, 'mcp_server_changed')).filter((each) => each.startsWith('worker'))
    expect(details.map((each) => each.split(/[ :]/)[1])).toEqual(['removed', 'changed', 'added'])
  })

  it('what was entered for it goes to nobody else, whoever changes its row', async () => {
    await add(await body('bound', { env: ['TOKEN'], credentials: { TOKEN: SECRET } }))
    const change = (spec: string): void => {
      const db = new Sqlite(join(test.home, 'data', 'svc.db'))
      db.prepare("UPDATE mcp_server SET spec = ?, revision = revision || 'x' WHERE name = 'bound'").run(spec)
      db.close()
    }
    const db = new Sqlite(join(test.home, 'data', 'svc.db'), { readonly: true })
    const [spec = ''] = db.prepare("SELECT spec FROM mcp_server WHERE name = 'bound'").pluck().all() as string[]
    db.close()
    const own = JSON.parse(spec) as { readonly args: readonly string[] }
    for (const other of [{ args: [...own.args, 'x'] }, { network: ['other.test'] }, { variables: { API: 'other' } }]) {
      change(JSON.stringify({ ...own, ...other }))
      await test.restart()
      const refused = await call('POST', '/api/mcp/servers/bound/restart')
      expect(refused).toMatchObject({
        status: 409,
        body: { error: { message: expect.stringContaining('another program or address than its secrets') } },
      })
      // A change of something else makes it no receiver either.
      expect((await call('PUT', '/api/mcp/servers/bound', { timeout_secs: 5 })).body.error.message).toMatch(
        /^credentials\.TOKEN: entered for another program/,
      )
    }
    change(spec)
    await test.restart()
    expect((await call('POST', '/api/mcp/servers/bound/restart')).body).toMatchObject({ state: 'connected' })
    expect(await textOf('mcp_bound_env')).toContain('TOKEN=***')
    expect((await call('DELETE', '/api/mcp/servers/bound')).status).toBe(200)
  })

  it('runs confined: neither the home of svc, other folders nor the network are open to it', async () => {
    let reached = 0
    const inside = createServer((_, answer) => {
      reached++
      answer.end()
    })
    await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve))
    const { port } = inside.address() as AddressInfo
    const added = await add(await body('prisoner', { network: ['allowed.test', '127.0.0.1'] }))
    expect(added).toMatchObject({ status: 201, body: { trust: 'confined' } })
    await writeFile(join(test.home, 'of-svc'), 'not for programs')
    const read = (path: string) => textOf('mcp_prisoner_look', { at: path })
    expect(await read(folderOf('prisoner'))).toContain('server.pl')
    for (const path of [join(test.home, 'of-svc'), join(test.home, 'data', 'svc.db'), '/etc/shadow', fixture, '/root'])
      expect(await read(path), path).toMatch(/^failed: (?:No such file|Permission denied)/)
    expect((await read(test.home)).split(' ')).not.toContain('of-svc')
    const reach = (at: string, how = 'reach') => textOf(`mcp_prisoner_${how}`, { at })
    expect(await reach(`http://127.0.0.1:${port}/`, 'connect')).toMatch(/^failed: /)
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, '10.0.0.1', '169.254.169.254', 'other.test'])
      expect(await reach(`http://${host}/`), host).toMatch(/ (?:403|502) /)
    expect(reached).toBe(0)
    expect((await call('GET', '/api/mcp/servers/prisoner/log')).body.log).toMatch(
      /^\[svc .*\] a connection of the program failed: .*"prisoner" may not reach 10\.0\.0\.1: its network does not name it$/m,
    )
    expect((await call('DELETE', '/api/mcp/servers/prisoner')).status).toBe(200)
    await new Promise((resolve) => inside.close(resolve))
  })

  it('leaves nothing when it does not work, or when it is only tested', async () => {
    const failing = { name: 'failing', command: 'true', env: ['TOKEN'], credentials: { TOKEN: SECRET } }
    for (const path of ['/api/mcp/servers', '/api/mcp/servers/test'])
      expect(await call('POST', path, failing), path).toMatchObject({
        status: 502,
        body: { error: { code: 'mcp_server_failed', message: expect.stringContaining('"failing"') } },
      })
    expect((await add({ name: 'missing', command: 'a-program-that-nobody-has' })).status).toBe(409)
    expect(kept()).toEqual({ rows: [], secrets: [] })
    expect((await readdir(join(test.home, 'mcp'))).filter((name) => /failing|missing/.test(name))).toEqual([])
    expect((await call('GET', '/api/mcp/servers')).body.total).toBe(0)
    const tried = await call('POST', '/api/mcp/servers/test', await body('tried'))
    expect(tried).toMatchObject({ status: 200, body: { status: 'ok', tools: expect.any(Array) } })
    expect(kept()).toEqual({ rows: [], secrets: [] })
    // It was there before.
    expect(existsSync(folderOf('tried'))).toBe(true)
    expect(JSON.stringify(test.log)).not.toContain(SECRET)
  })

  it('says why it does not start: a connection that was refused, a file that is not seen, a name without an address', async () => {
    const spec = await body('fetching', { network: ['10.0.0.1'] }, ['--fetch', 'http://10.0.0.1/'])
    const { status, body: answer } = await add(spec)
    expect(status).toBe(502)
    expect(answer.error.message).toMatch(/it ended with exit code 1, after a connection of it failed: .*10\.0\.0\.1/)
    const { body: other } = await add(await body('fetching', {}, ['--fetch', 'http://other.test/']))
    expect(other.error.message).toContain('"fetching" may not reach other.test: its network does not name it')
    const { body: hidden } = await add({ name: 'hidden', command: 'perl', args: [fixture] })
    expect(hidden.error.message).toContain(`It runs confined and does not see ${fixture}: install it`)
    const { body: far } = await add({ name: 'far', transport: 'http', url: 'https://far.invalid/mcp' })
    expect(far.error.message).toMatch(/could not be connected: far\.invalid /)
  })

  it('says with its failure what its program wrote last, at most error_output_chars, without secrets', async () => {
    const failing = { ...(await body('leaky', {}, ['--leak'])), env: ['TOKEN'], credentials: { TOKEN: SECRET } }
    for (const path of ['/api/mcp/servers', '/api/mcp/servers/test']) {
      const { status, body: answer } = await call('POST', path, failing)
      expect([status, answer.error.message]).toEqual([
        502,
        'the MCP server "leaky" could not be connected: it ended with exit code 7. It wrote:\n  no access with ***',
      ])
    }
    expect(JSON.stringify(test.log)).not.toContain(SECRET)
    const script = { name: 'gone', command: 'perl', args: ['/usr/no-such-server.pl'] }
    expect((await add(script)).body.error.message).toMatch(/It wrote:\n.*no-such-server\.pl.*No such file/)
  })

  it.each([
    ['sh', '-c'],
    ['env', 'sh', '-c'],
    ['timeout', '5', 'sh', '-c'],
    ['xargs', '-a', '/dev/null', 'sh', '-c'],
    ['perl', '-we', 'exec "sh", "-c", @ARGV'],
    ['node', '--eval=require("node:child_process").spawnSync("sh",["-c",process.argv[1]],{stdio:"inherit"})'],
  ])('is confined whatever its arguments make of it: %s', async (command, ...args) => {
    await writeFile(join(test.home, 'of-svc'), SECRET)
    const outside = [join(test.home, 'pwned'), '/tmp/svc-test-pwned', '/var/tmp/svc-test-pwned']
    const line = `for at in ${outside.join(' ')}; do echo x > $at; done; cat ${join(test.home, 'of-svc')} >&2; exit 9`
    const { status, body: answer } = await add({ name: 'shell', command, args: [...args, line] })
    expect([status, answer.error.message]).toEqual([502, expect.stringMatching(/of-svc: No such file or directory/)])
    expect(JSON.stringify([answer, test.log])).not.toContain(SECRET)
    expect(outside.filter((path) => existsSync(path))).toEqual([])
  })

  it.each([
    ['what it may widen only in the file', { command: 'true', trust: 'operator' }, 'invalid_request'],
    ['folders', { command: 'true', read: ['/etc'] }, 'invalid_request'],
    ['an address of this machine', { url: 'http://127.0.0.1:1/mcp' }, 'forbidden'],
    ['a name of this machine', { url: 'http://localhost:1/sse', transport: 'sse' }, 'mcp_server_failed'],
    ['a private address', { url: 'http://10.0.0.1/mcp' }, 'forbidden'],
    ['the addresses of a cloud', { url: 'http://169.254.169.254/mcp' }, 'forbidden'],
  ])('may not be %s', async (_, spec, code) => {
    for (const path of ['/api/mcp/servers', '/api/mcp/servers/test']) {
      const { status, body: answer } = await call('POST', path, { name: 'refused', ...spec })
      expect([status, answer.error.code], path).toEqual([statusOf[code], code])
    }
    expect(kept().rows).toEqual([])
  })

  it('ends with everything that it started, by kill -9 too, and comes back with the next call', async () => {
    const added = await add(await body('parent', {}, ['--child']))
    expect(added.status).toBe(201)
    // What it starts is there a little later than itself.
    const started = () =>
      eventually(async () => {
        const found = await processesOf(folderOf('parent'))
        expect(found.length).toBeGreaterThanOrEqual(2)
        return found
      })
    const children = await started()
    process.kill(added.body.pid, 'SIGKILL')
    await eventually(() => expect(children.filter(isRunning)).toEqual([]))
    await eventually(async () => expect(await textOf('mcp_parent_env')).toContain('HOME='))
    const { pid, state } = await viewOf(test, 'parent')
    expect([state, pid === added.body.pid, children.includes(pid)]).toEqual(['connected', false, false])
    const again = await started()
    await call('DELETE', '/api/mcp/servers/parent')
    await eventually(() => expect(again.filter(isRunning)).toEqual([]))
  })
})

/** Processes whose folder is this one, seen from outside of what confines them. */
async function processesOf(folder: string): Promise<readonly number[]> {
  const { readlink } = await import('node:fs/promises')
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')))
  return pids.filter((_, at) => folders[at] === folder)
}
