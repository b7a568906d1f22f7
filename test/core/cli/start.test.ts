import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { runHere } from './here.ts'
import { runCli, startCli, startDaemon } from './process.ts'
import type { Json } from '../../support/json.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-start-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

/** A plugin of the test in the home. */
async function addPlugin(name: string, setup: string): Promise<void> {
  await mkdir(join(home, 'plugins', name), { recursive: true })
  await writeFile(
    join(home, 'plugins', name, 'index.ts'),
    `
    import * as v from 'valibot'
    import { definePlugin, defineRoute } from 'svc/sdk'
    export default definePlugin({ name: '${name}', version: '1.0.0', config: v.object({}), setup({ routes }) { ${setup}; return {} } })`,
  )
}
const route = (body: string): string =>
  `routes.add(defineRoute({ method: 'POST', path: '/api/odd', summary: 'Odd', auth: 'bearer', effect: 'conversation', cost: 1, returns: v.object({ ok: v.boolean() }), async handle() { ${body} } }))`

describe('a passphrase without a terminal', () => {
  it.each([
    ['', 'no passphrase was given'],
    ['short\n', 'the passphrase must have at least 12 characters'],
  ])('of %j is refused, and the message says how to give one', async (input, problem) => {
    expect(await runCli(['backup', '--passphrase', '--home', home], { input })).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(
        `${problem}\\n {2}-> without a terminal it is the first line of standard input: .*backup --passphrase < passphrase.txt`,
      ) as string,
    })
    expect(existsSync(join(home, 'backups'))).toBe(false)
  })
})

describe('svc start', () => {
  it('names the key of a certificate it cannot read', async () => {
    await writeFile(
      join(home, 'config.toml'),
      '[http]\ntls = true\ntls_cert = "/nowhere/cert.pem"\ntls_key = "/nowhere/key.pem"\n',
    )
    expect(await runHere(['start', '--home', home, '--port', '0'])).toMatchObject({
      code: 6,
      stderr: expect.stringMatching(/http\.tls_(cert|key): \/nowhere\/\w+\.pem cannot be read \(ENOENT\)/) as string,
    })
  })
  it('tells all that is wrong at once, in the core, in sections and in plugins, as the doctor does', async () => {
    await writeFile(
      join(home, 'config.toml'),
      'log_level = "loud"\n[budget]\nmax_daily_usd = "x"\n[plugins.chat]\nloop_exact_stop = "y"\n' +
        '[plugins.memory]\nmax_memories_per_agent = "many"\n',
    )
    const places =
      /:1:1: log_level: [^]*:3:1: budget\.max_daily_usd: [^]*:7:1: plugins\.memory\.max_memories_per_agent: /
    expect(await runHere(['start', '--home', home, '--port', '0'])).toMatchObject({
      code: 6,
      stderr: expect.stringMatching(places) as string,
    })
    expect((await runHere(['doctor', '--home', home])).stdout).toMatch(places)
    await writeFile(join(home, 'config.toml'), '')
    // A flag is no part of the configuration.
    expect(await runHere(['start', '--home', home, '--port', 'abc'])).toMatchObject({
      code: 2,
      stderr: 'svc: --port: expected a whole number from 0 to 65535, found "abc"\n',
    })
    expect(await runHere(['start', '--home', join(home, 'config.toml')])).toMatchObject({
      code: 6,
      stderr: expect.stringContaining('a file is where a folder has to be') as string,
    })
  })
  // Before a database is named in the environment, which later lines of this process would read too.
  it.each(['vault_key_file = "key"', '[plugins.cluster]\nname = "web-1"'])(
    'refuses a home that is to share a database and names none: %j',
    async (given) => {
      await writeFile(join(home, 'config.toml'), `database_ulr = "postgres://svc@127.0.0.1:1/svc"\n${given}\n`)
      const refused = await runHere(['start', '--home', home, '--port', '0'])
      expect(refused.code, refused.stderr).toBe(6)
      expect(refused.stderr).toMatch(/database_url is missing, although/)
      expect(refused.stderr).toContain('config.toml:1: unknown key "database_ulr"; did you mean "database_url"?')
      expect(existsSync(join(home, 'data'))).toBe(false)
    },
  )
  it('names the database server that does not answer, without its password, and says what to do', async () => {
    const free = createServer()
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve))
    const { port } = free.address() as AddressInfo
    await new Promise((resolve) => free.close(resolve))
    const { code, stderr } = await runHere(['start', '--home', home, '--port', '0'], {
      SVC_DATABASE_URL: `postgres://me:sesame@127.0.0.1:${port}/svc`,
    })
    expect(code).toBe(1)
    expect(stderr).toContain(`svc: postgres://***@127.0.0.1:${port}/svc cannot be used: connect ECONNREFUSED`)
    expect(stderr).toContain('-> start the server, see that this machine reaches it, or correct database_url')
    expect(stderr).not.toContain('sesame')
  })
  it('says where it listens, last where the chat page is, and ends in order on SIGTERM', async () => {
    await using daemon = await startDaemon(home)
    expect((await fetch(`${daemon.url}/api/health`)).status).toBe(200)
    expect(JSON.parse(await readFile(join(home, 'daemon.json'), 'utf8'))).toMatchObject({ pid: daemon.pid })
    daemon.kill('SIGTERM')
    const { code, stdout, stderr } = await daemon.ended
    expect(stdout).toBe(`svc listening on ${daemon.url}\nOpen the chat page: ${daemon.url}/\n`)
    expect(stderr).toContain('stopped: SIGTERM')
    expect(code).toBe(0)
    expect(existsSync(join(home, 'daemon.json'))).toBe(false)
    expect((await stat(join(home, 'data', 'svc.db'))).mode & 0o077).toBe(0)
  })
  it('says in JSON where it listens, and logs in JSON', async () => {
    const daemon = startCli(['start', '--home', home, '--port', '0', '--json', '--log-format', 'json'])
    const [line] = await daemon.prints(/^\{"status":"listening".*$/m)
    expect(JSON.parse(line)).toMatchObject({
      status: 'listening',
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string,
      pid: daemon.pid,
      home,
      api_key_set: false,
    })
    daemon.kill('SIGINT')
    const { code, stderr } = await daemon.ended
    expect(code).toBe(0)
    expect(
      stderr
        .trim()
        .split('\n')
        .map((text) => (JSON.parse(text) as { level: string }).level),
    ).toContain('info')
  })
  it('says that a key is set, and never which', async () => {
    await using daemon = await startDaemon(home, {
      env: { SVC_API_KEY: 'a-very-secret-key' },
      args: ['--log-level', 'debug'],
    })
    expect((await fetch(`${daemon.url}/api/agents`)).status).toBe(401)
    daemon.kill('SIGTERM')
    const { stdout, stderr } = await daemon.ended
    expect(stdout).toMatch(/A key is set[^\n]*\nOpen the chat page: \S+\/\n$/)
    expect(stdout + stderr).not.toContain('a-very-secret-key')
  })
  it('ends at once when another one uses the home, naming its process', async () => {
    await using daemon = await startDaemon(home)
    const second = await runCli(['start', '--home', home, '--port', '0'])
    expect(second).toMatchObject({ code: 7, stdout: '' })
    expect(second.stderr).toContain(`another svc (process ${daemon.pid}, 127.0.0.1:`)
    expect(second.stderr).toContain('svc stop')
    expect((await fetch(`${daemon.url}/api/health`)).status).toBe(200)
  })
  it('names the port that is taken and what to do', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    try {
      const { code, stdout, stderr } = await runCli(['start', '--home', home, '--port', String(port)])
      expect({ code, stdout }).toEqual({ code: 7, stdout: '' })
      expect(stderr).toMatch(
        new RegExp(
          `svc: port ${port} on 127\\.0\\.0\\.1 is taken by another program\\n {2}-> choose another one with --port`,
        ),
      )
      // Nothing of the failed start is left.
      await using daemon = await startDaemon(home)
      expect(daemon.url).not.toContain(String(port))
    } finally {
      server.close()
    }
  })
  it.each([
    [['--port', 'foo'], 2, '--port: expected a whole number from 0 to 65535, found "foo"'],
    [['--port', '70000'], 2, '--port: expected a whole number from 0 to 65535'],
    [['--host', 'a b'], 2, '--host: expected a host name or an address'],
    [['--log-level', 'loud'], 2, '--log-level: expected one of silent, error'],
    [['--log-format', 'xml'], 2, '--log-format: expected one of text, json'],
    [['--config', '/nonexistent/x.ts'], 6, '/nonexistent/x.ts: the file named with --config does not exist'],
    [['--prot', '1'], 2, 'unknown flag --prot\n  -> did you mean --port?'],
    [['--port'], 2, '--port needs a value'],
    [['--port='], 2, '--port needs a value'],
    [['--port', '--open'], 2, '--port needs a value'],
    [['surplus'], 2, 'too many arguments'],
    [['--host', '0.0.0.0'], 5, '0.0.0.0 can be reached by other machines, and no key is set'],
    [['--public'], 5, 'no key is set'],
    [['--host', '203.0.113.7'], 5, 'no key is set'],
  ] as const)('refuses %j with exit code %i', async (args, code, message) => {
    const ended = await runHere(['start', '--home', home, '--port', '0', ...args])
    expect({ code: ended.code, stdout: ended.stdout }).toEqual({ code, stdout: '' })
    expect(ended.stderr).toContain(message)
    expect(ended.stderr).not.toMatch(/\n\s+at /)
  })
  it('says that an address is not of this machine', async () => {
    const { code, stderr } = await runCli(['start', '--home', home, '--host', '203.0.113.7', '--port', '0'], {
      env: { SVC_API_KEY: 'k-123456' },
    })
    expect(code).toBe(1)
    expect(stderr).toContain('this machine has no address 203.0.113.7')
  })
  it('refuses a home it cannot use', async () => {
    await writeFile(join(home, 'file'), '')
    const { code, stderr } = await runHere(['start', '--home', join(home, 'file', 'home'), '--port', '0'])
    expect(code).toBe(6)
    expect(stderr).toMatch(/the home \S+ cannot be used: a file is where a folder has to be\n {2}-> choose another one/)
  })
  // Node's recursive mkdir never returns there: the system answers ENOENT although the folder above exists (EACCES to
  // anybody but root).
  it.each([
    [
      'the home',
      ['start', '--home', '/proc/svc-home'],
      {},
      /the home \/proc\/svc-home cannot be used \((?:ENOENT|EACCES)\)\n {2}-> /,
    ],
    [
      'what is in the home',
      ['start', '--home', '/proc'],
      {},
      /the home \/proc cannot be used \((?:ENOENT|EACCES)\)\n {2}-> /,
    ],
    ['the home of a command', ['config', 'set', 'log_level', 'debug', '--home', '/proc/svc-home'], {}, /ENOENT|EACCES/],
    [
      'the folder of the database',
      ['start'],
      { SVC_DATABASE_URL: 'sqlite:/proc/svc-data/svc.db' },
      /the folder \/proc\/svc-data cannot be made \((?:ENOENT|EACCES)\)\n {2}-> .*database_url/,
    ],
    [
      'the folder of the data',
      ['start'],
      { SVC_DATA_DIR: '/proc/svc-data/deep' },
      /the folder \/proc\/svc-data cannot be made \((?:ENOENT|EACCES)\)/,
    ],
  ] as const)('ends at once when %s cannot be made', async (_, args, env, message) => {
    const port = args[0] === 'start' ? ['--port', '0'] : []
    const { code, stderr } = await runCli([...args, ...port], { env: { SVC_HOME: home, ...env } })
    expect(stderr).toMatch(message)
    expect(code).toBe(args[0] === 'start' ? 6 : 1)
  })
  it('refuses a wrong configuration with file, line and key, and warns of unknown keys', async () => {
    await writeFile(join(home, 'config.toml'), '[rate_limit]\ntokens_per_minute = "many"\n')
    const { code, stderr } = await runHere(['start', '--home', home, '--port', '0'])
    expect(code).toBe(6)
    expect(stderr).toContain(`${join(home, 'config.toml')}:2:1: rate_limit.tokens_per_minute: expected a whole number`)
    await writeFile(join(home, 'config.toml'), 'log_levle = "info"\n')
    await using daemon = await startDaemon(home)
    await daemon.prints(/warn .*config\.toml:1: unknown key "log_levle" is ignored; did you mean "log_level"\?/)
    expect(await (await fetch(`${daemon.url}/api/health/detail`)).json()).toMatchObject({
      config_warnings: expect.arrayContaining([expect.stringContaining('log_levle')]) as unknown,
    })
  })
  it('refuses a database that is damaged, without a stack', async () => {
    await mkdir(join(home, 'data'))
    await writeFile(join(home, 'data', 'svc.db'), 'this is no database')
    const { code, stderr } = await runCli(['start', '--home', home, '--port', '0'])
    expect(code).toBe(1)
    expect(stderr).toContain('is not an SQLite database')
    expect(stderr).not.toMatch(/\n\s+at /)
  })
})

it('a daemon goes on when nobody reads what it prints any more', async () => {
  await using daemon = await startDaemon(home)
  daemon.hangUp()
  daemon.kill('SIGHUP')
  // Its new address is only in the file now.
  const restarts = async (): Promise<unknown> => {
    const { pid, listen_addr: address } = JSON.parse(await readFile(join(home, 'daemon.json'), 'utf8'))
    const health: Json = await (await fetch(`http://${address}/api/health`)).json()
    return [pid, health.restart_count]
  }
  await eventually(async () => expect(await restarts()).toEqual([daemon.pid, 1]))
  daemon.kill('SIGTERM')
  expect((await daemon.ended).code).toBe(0)
})

describe('restart', () => {
  it('goes on in the same process with the configuration read again', async () => {
    const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })
    await writeFile(join(home, 'config.toml'), 'api_key = "key-before"\n')
    await using daemon = await startDaemon(home)
    await writeFile(join(home, 'config.toml'), 'api_key = "key-after"\n')
    expect((await fetch(`${daemon.url}/api/restart`, { method: 'POST', ...bearer('key-before') })).status).toBe(200)
    const [, url] = await daemon.prints(/Open[^]*svc listening on (\S+)[^]*Open/)
    expect((await fetch(`${url}/api/status`, bearer('key-before'))).status).toBe(401)
    expect((await fetch(`${url}/api/status`, bearer('key-after'))).status).toBe(200)
    expect(await (await fetch(`${url}/api/health`)).json()).toMatchObject({ restart_count: 1 })
    expect(JSON.parse(await readFile(join(home, 'daemon.json'), 'utf8'))).toMatchObject({ pid: daemon.pid })
  })
  it('goes on with the old configuration when the new one is broken, and says so', async () => {
    await using daemon = await startDaemon(home)
    await writeFile(join(home, 'config.toml'), 'log_level = 5\n')
    daemon.kill('SIGHUP')
    await daemon.prints(
      /the new configuration cannot be used, going on with the old one[^]*config\.toml:1:1: log_level/,
    )
    const [, url] = await daemon.prints(/Open[^]*svc listening on (\S+)[^]*Open/)
    expect(await (await fetch(`${url}/api/health/detail`)).json()).toMatchObject({
      status: 'ok',
      config_warnings: expect.arrayContaining([expect.stringContaining('not taken over')]) as unknown,
    })
  })
})

it('goes on with the old key when the new configuration would let other machines in without one', async () => {
  await writeFile(join(home, 'config.toml'), 'api_key = "key-before"\n')
  await using daemon = await startDaemon(home)
  await writeFile(join(home, 'config.toml'), '[http]\npublic = true\n')
  daemon.kill('SIGHUP')
  await daemon.prints(/going on with the old one:[^]*no key is set/)
  const [, url] = await daemon.prints(/Open[^]*svc listening on (\S+)[^]*Open/)
  expect((await fetch(`${url}/api/status`)).status).toBe(401)
})

describe('the end', () => {
  it('comes at once with a second signal while work still runs', async () => {
    await addPlugin(
      'odd',
      route('globalThis.process.stderr.write("working\\n"); await new Promise(() => {}); return { ok: true }'),
    )
    // Longer than a test may take: a daemon that waits for the work fails it.
    await using daemon = await startDaemon(home, { env: { SVC_PLUGINS__DRAIN_MS: '600000' } })
    const request = fetch(`${daemon.url}/api/odd`, { method: 'POST' }).catch(() => 'cut')
    await daemon.prints(/working/)
    daemon.kill('SIGINT')
    await daemon.prints(/SIGINT: stopping/)
    const repeat = setInterval(() => daemon.kill('SIGINT'), 250)
    expect((await daemon.ended).code).toBe(130)
    clearInterval(repeat)
    expect(await request).toBe('cut')
  })
  it('comes in order when npm sends on the signal of the terminal', async () => {
    await using daemon = await startDaemon(home)
    daemon.kill('SIGINT')
    await daemon.prints(/SIGINT: stopping/)
    daemon.kill('SIGINT')
    const { code, stderr } = await daemon.ended
    expect(stderr).toContain('stopped: SIGINT')
    expect(code).toBe(0)
  })
  it('comes with code 1 after an exception nobody caught, logged and in order', async () => {
    await addPlugin('odd', route('setImmediate(() => { throw new Error("lost") }); return { ok: true }'))
    await using daemon = await startDaemon(home)
    await fetch(`${daemon.url}/api/odd`, { method: 'POST' }).catch(() => undefined)
    const { code, stderr } = await daemon.ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/error .*an exception was not caught in plugin "odd"; the daemon stops[^]*Error: lost/)
    expect(JSON.parse(await readFile(join(home, 'plugin-crashes.json'), 'utf8'))).toEqual({
      [join(home, 'plugins', 'odd')]: { times: [expect.any(Number)], message: 'lost' },
    })
    expect(existsSync(join(home, 'daemon.json'))).toBe(false)
  })
  it('does not come with a promise nobody watched: it is logged and counted', async () => {
    await addPlugin('odd', route('setImmediate(() => { Promise.reject(new Error("lost")) }); return { ok: true }'))
    await using daemon = await startDaemon(home)
    await fetch(`${daemon.url}/api/odd`, { method: 'POST' })
    await daemon.prints(/nothing handled it[^]*Error: lost/)
    expect(await (await fetch(`${daemon.url}/api/health`)).json()).toMatchObject({ panic_count: 1 })
  })
})
