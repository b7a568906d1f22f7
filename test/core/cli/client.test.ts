import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byHand } from '../../support/chat-stage.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { FakeProvider } from '../../support/fake-provider.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'
import { toFailure } from '../../../core/cli/failure-output.ts'
import { runHere } from './here.ts'
import type { Answer } from './here.ts'
import { runCli, startCli, startDaemon } from './process.ts'

const key = 'key-of-the-test'
let home: string
let daemon: Awaited<ReturnType<typeof startDaemon>>
let provider: FakeProvider
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-client-'))
  provider = await startFakeProvider()
  await writeFile(
    join(home, 'config.toml'),
    `api_key = "${key}"\ndefault_provider = "openai"\ndefault_model = "m"\n[providers.openai]\napi_key = "sk-x"\nbase_url = "${provider.url}"\n`,
  )
  daemon = await startDaemon(home)
})
afterAll(async () => {
  await daemon[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
  await rm(home, { recursive: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere([...args, '--home', home])
const json = async (...args: string[]): Promise<unknown> => {
  const { stdout, stderr, code } = await svc(...args, '--json')
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

describe('status and refusals', () => {
  it('shows the daemon of the home, for people and for scripts', async () => {
    const { code, stdout } = await svc('status')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^svc +0\.\d+\.\d+, ok, up \d+ s\naddress +http:\/\/127[^]*\ndatabase +connected\n/)
    expect(await json('status')).toMatchObject({
      running: true,
      url: daemon.url,
      pid: daemon.pid,
      agent_count: 1,
      health: { database: 'connected' },
    })
  })
  it('says with exit code 5 that the key is missing, and what to do', async () => {
    const other = await mkdtemp(join(tmpdir(), 'svc-other-'))
    const answer = await runHere(['status', '--url', daemon.url, '--home', other])
    expect(answer).toMatchObject({ code: 5, stdout: '' })
    expect(answer.stderr).toMatch(/asks for a key[^]*-> set SVC_API_KEY/)
    const wrong = await runHere(['status', '--url', daemon.url, '--home', other], { SVC_API_KEY: 'wrong-12345' })
    expect(wrong.stderr).toMatch(/does not accept this key[^]*-> correct SVC_API_KEY/)
    // Tests may run as root, who may use every file.
    const denied = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', path: '/x/daemon.json' })
    expect(toFailure(denied)).toMatchObject({
      exit: 5,
      message: 'this user may not use /x/daemon.json (EACCES)',
      advice: expect.stringContaining('--home') as string,
    })
    expect((await runHere(['status', '--url', daemon.url, '--home', other], { SVC_API_KEY: key })).code).toBe(0)
    await rm(other, { recursive: true })
  })
  it('says with exit code 3 that no daemon runs, or that an address is silent', async () => {
    expect(await runHere(['status', '--home', join(home, 'none')])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(`start it with \`svc start --home ${join(home, 'none')}\``) as string,
    })
    expect(await runHere(['status', '--url', 'http://127.0.0.1:1', '--home', home])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('no answer from http://127.0.0.1:1') as string,
    })
    expect(await runHere(['status', '--url', 'ftp://x', '--home', home])).toMatchObject({ code: 2 })
  })
  it('prints failures as JSON on standard error when JSON is asked for', async () => {
    const { stdout, stderr } = await svc('agent', 'show', 'nobody', '--json')
    expect(stdout).toBe('')
    expect(JSON.parse(stderr)).toEqual({
      error: { message: 'there is no agent "nobody"', exit: 4, advice: 'there are: assistant' },
    })
  })
  it('still speaks to the daemon when the configuration is broken', async () => {
    const file = join(home, 'config.toml')
    const before = await readFile(file, 'utf8')
    await writeFile(file, 'log_level = 5\n')
    try {
      const answer = await runHere(['status', '--home', home], { SVC_API_KEY: key })
      expect(answer.code).toBe(0)
      expect(answer.stderr).toContain('the configuration cannot be read, going on without it')
    } finally {
      await writeFile(file, before)
    }
  })
})

describe('agents and plugins', () => {
  it('spawns from flags, shows, lists and kills by name', async () => {
    expect((await svc('agent', 'spawn', '--name', 'scout', '--prompt', 'You find "things".')).stdout).toMatch(
      /^agent "scout" \([\da-f-]{36}\) was created; talk to it with: svc chat scout\n/,
    )
    expect(await json('agent', 'show', 'scout')).toMatchObject({
      name: 'scout',
      model: { provider: 'openai', model: 'm' },
    })
    expect((await svc('agent', 'list')).stdout).toMatch(
      /^NAME +STATE +MODEL +ID +CREATED\nassistant +Running[^]*\nscout +Running/,
    )
    expect((await svc('agent', 'kill', 'scout')).code).toBe(0)
    expect((await svc('agent', 'kill', 'scout')).code).toBe(4)
  })
  it('spawns from a file, and says what is wrong with one', async () => {
    const file = join(home, 'a.toml')
    await writeFile(file, 'name = "filed"\nmodule = "builtin:chat"\n[model]\nprovider = "default"\nmodel = "default"\n')
    expect(await json('agent', 'spawn', file)).toMatchObject({ name: 'filed', agent_id: expect.any(String) as string })
    expect(await svc('agent', 'spawn', file)).toMatchObject({ code: 1 })
    await writeFile(file, 'name = = "x"\n')
    expect(await svc('agent', 'spawn', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${file}: malformed TOML at line 1`) as string,
    })
    await writeFile(file, 'name = "two"\n[model]\ntemperature = "hot"\nmax_tokens = "many"\n')
    const { stderr } = await svc('agent', 'spawn', file)
    expect(stderr).toContain(`${file}:3: model.temperature: `)
    expect(stderr).toContain(`${file}:4: model.max_tokens: `)
    const checked = await svc('agent', 'check', file)
    expect(checked.code).toBe(1)
    expect(checked.stdout).toContain(`${file}:3: model.temperature: `)
    expect(checked.stdout).toContain(`${file}:4: model.max_tokens: `)
    await writeFile(file, 'name = "filed"\n')
    expect(await svc('agent', 'check', file)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('exists') as string,
    })
    expect(await svc('agent', 'check', file, '--agent', 'filed')).toMatchObject({
      code: 0,
      stdout: `${file} is right\n`,
    })
    expect(await svc('agent', 'spawn', join(home, 'none.toml'))).toMatchObject({ code: 4 })
    expect(await svc('agent', 'spawn')).toMatchObject({ code: 2 })
    expect(await svc('agent', 'spawn', file, '--name', 'x')).toMatchObject({ code: 2 })
  })
  it('says what the daemon doubts about a manifest', async () => {
    const file = join(home, 'doubtful.toml')
    await writeFile(file, 'nam = "x"\ntool = ["shell_exec"]\n')
    const { code, stdout, stderr } = await svc('agent', 'spawn', file)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^agent "unnamed" /)
    expect(stderr).toMatch(/^svc: warning: .*nam/m)
    expect(stderr).toMatch(/^svc: warning: .*tool/m)
    expect(stderr).toMatch(/^svc: warning: the manifest has no "name", so the agent is called "unnamed"$/m)
    expect((await svc('agent', 'kill', 'unnamed')).code).toBe(0)
  })
  it('hands a signed manifest over as one, whose text and signer are checked', async () => {
    await writeFile(join(home, 'sealed.toml'), 'name = "sealed"\n')
    expect(await runHere(['manifest', 'keygen', join(home, 'signer.pem')])).toMatchObject({ code: 0 })
    const { stdout } = await runHere(['manifest', 'sign', join(home, 'sealed.toml'), '--key', join(home, 'signer.pem')])
    const file = join(home, 'sealed.json')
    await writeFile(file, stdout.replace('sealed', 'forged'))
    expect(await svc('agent', 'spawn', file)).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('hash') as string,
    })
    await writeFile(file, stdout)
    expect(await svc('agent', 'spawn', file)).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('trusted_signers') as string,
    })
  })
  it('lists plugins and reloads one', async () => {
    expect(await json('plugin', 'list')).toMatchObject({
      plugins: expect.arrayContaining([expect.objectContaining({ name: 'kv', state: 'loaded' })]) as unknown,
    })
    expect((await svc('plugin', 'list')).stdout).toMatch(
      /^NAME +VERSION +STATE +ACCESS +ISOLATION +REGISTERED +RELOADS +FOLDER\n[^]*kv +1\.0\.0 +loaded +built-in +none +\d+ routes, \d+ tools/,
    )
    expect((await svc('plugin', 'list', '--long')).stdout).toMatch(/\nkv\n[^]*\n {2}tool +kv_set\n/)
    expect((await svc('plugin', 'info', 'kv')).stdout).toMatch(/^name +kv\n[^]*\nroute +GET \/api\//)
    expect((await svc('plugin', 'reload', 'kv')).stdout).toBe('plugin "kv" reloaded\n')
    expect((await svc('plugin', 'reload', 'nobody')).code).toBe(4)
  })
})

describe('chat', () => {
  it('sends one message and prints the answer alone', async () => {
    provider.script({ text: ['Hel', 'lo ', 'you'] })
    expect(await svc('chat', '-m', 'Hi')).toEqual({ code: 0, stdout: 'Hello you\n', stderr: '' })
  })
  it('prints every event as a JSON line on request', async () => {
    provider.script({ text: ['Hello'] })
    const { stdout } = await svc('chat', '-m', 'Hi', '--json')
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { event: string }).event),
    ).toEqual(['chunk', 'done'])
  })
  it('makes control characters of an answer harmless', async () => {
    provider.script({ text: ['a\u001b]0;title\u0007b\nc'] })
    expect((await svc('chat', '-m', 'Hi')).stdout).toBe('a\\u001b]0;title\\u0007b\nc\n')
  })
  it('takes a command for the only message as it does in the terminal', async () => {
    const before = provider.requests.length
    expect(await svc('chat', '-m', '/help')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /\/agents: the agents there are[^]*\/usage[^]*\/agent <name>: talk to another one/,
      ) as string,
      stderr: '',
    })
    expect((await svc('chat', '-m', '/agents')).stdout).toMatch(/^\* assistant \(/)
    expect((await svc('chat', '-m', '/model')).stdout).toBe('The model is m by openai.\n')
    expect(provider.requests.length).toBe(before)
    provider.script({ text: 'a path' })
    expect((await svc('chat', '-m', '/etc/passwd is what?')).stdout).toBe('a path\n')
  })
  it('takes lines of a pipe as messages and commands, in their order', async () => {
    provider.script({ text: 'one' }, { text: 'two' })
    const { code, stdout, stderr } = await runCli(['chat', '--home', home], {
      input: 'first\n/model\n\nsecond\n/agents\n/nonsense\n/new\n/exit\nnever sent\n',
    })
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'one\ntwo\n' })
    expect(stderr).toMatch(
      /^The model is m by openai\.\n[^]*\* assistant[^]*Unknown command \/nonsense[^]*New session [\da-f-]{36}\./,
    )
  })
  it('says on standard error where a message is whose answer is slow', async () => {
    const hand = byHand()
    provider.script({ text: hand.text })
    const cli = startCli(['chat', '-m', 'Hi', '--home', home])
    await cli.prints(/\(received; the model is at it\)/)
    hand.say('there')
    hand.end()
    expect(await cli.ended).toMatchObject({ code: 0, stdout: 'there\n' })
  })
  it('ends with the failure of an answer, with a reason', async () => {
    provider.script({ status: 401, body: '{"error":{"message":"bad key"}}' })
    const { code, stderr } = await svc('chat', '-m', 'Hi')
    expect(code).toBe(1)
    expect(stderr).toMatch(/^svc: .*/)
    expect(stderr).not.toContain('sk-x')
  })
  it('knows no agent of that name', async () => {
    expect(await svc('chat', 'nobody', '-m', 'x')).toMatchObject({ code: 4 })
  })
  it('stops the answer in the daemon with Ctrl-C, then leaves', async () => {
    provider.script({ text: ['begun '], fault: 'stall' })
    const before = provider.requests.length
    const chat = startCli(['chat', '--home', home, '-m', 'Hi'])
    await chat.prints(/begun/)
    chat.kill('SIGINT')
    const { code, stdout, stderr } = await chat.ended
    expect({ code, stdout }).toEqual({ code: 130, stdout: 'begun \n' })
    expect(stderr).toContain('(stopped)')
    expect(await provider.requests[before]?.closed).toBe(false)
    provider.script({ text: 'fine' })
    expect((await svc('chat', '-m', 'Again')).stdout).toBe('fine\n')
  })
})

describe('providers', () => {
  it('those that can be used come first', async () => {
    const rows = (await svc('providers')).stdout.trim().split('\n').slice(1)
    const ranks = rows.map((row) => (/ no key | not installed /.test(row) ? 2 : / needs none /.test(row) ? 1 : 0))
    expect(rows[0]).toMatch(/^openai +has a key /)
    expect(ranks).toEqual(ranks.toSorted())
    expect(ranks).toContain(1)
    expect(ranks).toContain(2)
  })
})

describe('configuration of a running daemon', () => {
  it('shows where values come from and hides secrets', async () => {
    expect((await svc('config', 'get', 'api_key')).stdout).toBe('***\n')
    const { stdout } = await svc('config', 'get', '--sources')
    expect(stdout).toContain(`providers.openai.api_key = "***"  # ${join(home, 'config.toml')}:5\n`)
    expect(stdout).toContain('rate_limit.tokens_per_minute = 6000  # default\n')
    expect(stdout).not.toContain(key)
    expect(await svc('config', 'get', 'rate_limt.x')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('did you mean "rate_limit.x"?') as string,
    })
  })
  it('writes one key, says when it counts and refuses a wrong one', async () => {
    const { stdout } = await svc('config', 'set', 'providers.openai.api_key', 'sk-new-secret')
    expect(stdout).toBe(
      `providers.openai.api_key = "***" is in ${join(home, 'config.toml')}\nThe running daemon takes it with \`svc config reload\`.\n`,
    )
    expect(await readFile(join(home, 'config.toml'), 'utf8')).toContain('api_key = "sk-new-secret"\nbase_url')
    expect(
      (await runHere(['config', 'set', 'log_level', 'warn', '--home', home], { SVC_LOG_LEVEL: 'error' })).stdout,
    ).toContain('no effect now, because SVC_LOG_LEVEL sets it too')
    expect(await svc('config', 'set', 'log_level', 'loud')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('nothing was written') as string,
    })
    expect(await svc('config', 'set', 'log_levle', 'warn')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean "log_level"?') as string,
    })
  })
  it('says what a reload changed: a few keys in a line, and many below each other', async () => {
    await svc('config', 'set', 'plugins.sessions.context_messages', '41')
    expect((await svc('config', 'reload')).stdout).toMatch(/^In force now: [^\n]*plugins\.sessions\.context_messages/)
    for (const key of ['max_sessions_per_agent', 'retention_days', 'search_max_messages', 'branch_max_messages'])
      await svc('config', 'set', `plugins.sessions.${key}`, '7')
    expect((await svc('config', 'reload')).stdout).toBe(
      'In force now, 4 keys:\n  plugins.sessions.branch_max_messages\n  plugins.sessions.max_sessions_per_agent\n' +
        '  plugins.sessions.retention_days\n  plugins.sessions.search_max_messages\n',
    )
  })
  it('refuses a key no plugin reads, and names the one that was meant', async () => {
    for (const [key, value, right] of [
      ['plugins.agents.manifest_signing.policy', 'require', 'did you mean "manifest_signing.policy"?'],
      ['plugins.sessions.context_mesages', '5', 'did you mean "plugins.sessions.context_messages"?'],
      ['plugins.sesions.context_messages', '5', 'did you mean "sessions"?'],
      ['plugins.sessions.context_messages', 'many', 'a whole number'],
    ] as const) {
      expect(await svc('config', 'set', key, value)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(right) as string,
      })
      if (right.startsWith('did'))
        expect(await svc('config', 'get', key)).toMatchObject({
          stderr: expect.stringContaining(right) as string,
        })
    }
    expect(await readFile(join(home, 'config.toml'), 'utf8')).not.toMatch(/sesions|mesages|policy/)
  })
  it('is found sound by the doctor, who knows that the daemon runs', async () => {
    expect(await json('doctor')).toMatchObject({
      ok: true,
      checks: expect.arrayContaining([
        expect.objectContaining({
          name: 'daemon',
          state: 'ok',
          found: expect.stringContaining(`process ${daemon.pid}`) as string,
        }),
        expect.objectContaining({
          name: 'database',
          state: 'ok',
          found: expect.stringContaining('in use by the daemon') as string,
        }),
        expect.objectContaining({ name: 'providers', state: 'ok', found: 'openai / m answers' }),
      ]) as unknown,
    })
  })
})

describe('a default that cannot be used', () => {
  it.each(['status', 'doctor'])('is reported by svc %s', async (command) => {
    await using own = await temporaryFolder()
    await writeFile(join(own.path, 'config.toml'), 'default_provider = "openia"\n')
    await using _other = await startDaemon(own.path)
    expect((await runHere([command, '--home', own.path])).stdout).toContain(
      'There is no provider "openia"; did you mean "openai"?',
    )
  })
})

describe('stop', () => {
  it('ends the daemon and waits until it is gone; then there is none', async () => {
    const own = await mkdtemp(join(tmpdir(), 'svc-stop-'))
    await using other = await startDaemon(own)
    expect(await runHere(['stop', '--home', own])).toMatchObject({
      code: 0,
      stdout: `svc stopped (process ${other.pid})\n`,
    })
    expect((await other.ended).code).toBe(0)
    expect((await runHere(['stop', '--home', own])).code).toBe(3)
    await rm(own, { recursive: true })
  })
  it('ends by signal a daemon whose key is not known', async () => {
    const own = await mkdtemp(join(tmpdir(), 'svc-stop-'))
    await using other = await startDaemon(own, { env: { SVC_API_KEY: 'unknown-key' } })
    expect(await runHere(['stop', '--home', own, '--json'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"how": "signal"') as string,
    })
    expect((await other.ended).stderr).toContain('stopped: SIGTERM')
    await rm(own, { recursive: true })
  })
})
