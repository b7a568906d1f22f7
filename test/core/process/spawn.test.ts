import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Child, SpawnRequest } from '../../../core/process/child.ts'
import { createSpawn } from '../../../core/process/spawn.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

const canary = `canary-${process.pid}-value`
let cwd = ''
let scope = new Scope('test')

beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'svc-spawn-'))
})
afterAll(async () => {
  await rm(cwd, { recursive: true, force: true })
})
beforeEach(() => {
  scope = new Scope('test')
  vi.stubEnv('SVC_TEST_CANARY', canary)
  vi.stubEnv('OPENAI_API_KEY', canary)
  vi.stubEnv('NODE_OPTIONS', '--no-warnings')
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await scope.close(0)
})

const start = (request: Omit<SpawnRequest, 'cwd'> & { cwd?: string }): Promise<Child> =>
  createSpawn(scope).start({ cwd, ...request })
const run = async (command: string, args: readonly string[] = [], more: Partial<SpawnRequest> = {}) => {
  const child = await start({ command, args, ...more })
  const exit = await child.ended
  return { ...exit, ...child.read() }
}
/** Processes whose command line has this text in it. */
async function alive(text: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const lines = await Promise.all(
    pids.map(async (pid) => [pid, await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')] as const),
  )
  return lines.filter(([, line]) => line.includes(text)).map(([pid]) => pid)
}

describe('the world of a child', () => {
  it('holds nothing of the environment of the daemon', async () => {
    const { text, code } = await run('env')
    expect(code).toBe(0)
    expect(text).not.toContain(canary)
    const names = text
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0])
      .sort()
    // bubblewrap says where it starts.
    expect(names.filter((name) => name !== 'PWD')).toEqual([
      'HOME',
      'LANG',
      'LC_ALL',
      'PATH',
      'SVC_PROCESS',
      'TEMP',
      'TERM',
      'TMP',
      'TMPDIR',
    ])
    expect(text).toContain(`HOME=${cwd}\n`)
    expect(text).toContain(`TMPDIR=${cwd}/.tmp`)
    expect(text).toMatch(/^PATH=\/usr\/local\/sbin:\/usr\/local\/bin:/m)
  })

  it('does not show the environment of its parent either', async () => {
    const { text } = await run('sh', ['-c', 'cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n"'])
    expect(text).not.toContain(canary)
    expect(text).toContain('SVC_PROCESS=')
  })

  it('has no network unless somebody says which', async () => {
    const { level } = await createSpawn(scope).isolation()
    const { text } = await run('cat', ['/proc/net/dev'])
    if (level === 'bubblewrap')
      expect(
        text
          .trim()
          .split('\n')
          .slice(2)
          .map((line) => line.split(':')[0]?.trim()),
      ).toEqual(['lo'])
    expect(await run('perl', ['-e', 'socket(S, 40, 1, 0) or print "$!"'])).toMatchObject({
      text: expect.stringMatching(/not supported/),
    })
  })

  it('has the workspace as its folder and an input that has ended', async () => {
    expect((await run('pwd')).text).toBe(`${cwd}\n`)
    expect(await run('cat')).toMatchObject({ code: 0, text: '' })
  })

  it('takes further values under harmless names only', async () => {
    expect((await run('env', [], { env: { COLOR: 'blue' } })).text).toContain('COLOR=blue')
    expect((await run('env', [], { env: { MY_TOKEN: 'abc' }, approvedEnv: ['MY_TOKEN'] })).text).toContain(
      'MY_TOKEN=abc',
    )
    for (const name of [
      'MY_TOKEN',
      'DB_PASSWORD',
      'LD_PRELOAD',
      'NODE_OPTIONS',
      'npm_config_x',
      'HTTPS_PROXY',
      'DYLD_X',
      'GIT_CONFIG_COUNT',
      'PATH',
      'HOME',
      'A=B',
      '',
    ]) {
      await expect(run('env', [], { env: { [name]: 'x' } })).rejects.toMatchObject({ code: 'forbidden' })
    }
    await expect(run('env', [], { env: { LD_PRELOAD: 'x' }, approvedEnv: ['LD_PRELOAD'] })).rejects.toMatchObject({
      code: 'forbidden',
    })
  })
})

describe('the files of the daemon', () => {
  it.each([false, true])(
    'are not there for a child, but for its own folder; it may make namespaces: %s',
    async (confinesItself) => {
      const home = await realpath(await mkdtemp(join(tmpdir(), 'svc-home-')))
      const own = join(home, 'data', 'workspaces', 'a')
      await mkdir(own, { recursive: true })
      await mkdir(join(home, 'data', 'workspaces', 'b'))
      await Promise.all([
        writeFile(join(home, 'vault.key'), 'the-key'),
        writeFile(join(own, 'mine'), 'my file'),
        writeFile(join(home, 'data', 'workspaces', 'b', 'theirs'), 'their file'),
      ])
      const spawn = createSpawn(scope, { folders: { hidden: [home], code: [] } })
      const child = await spawn.start({
        command: 'sh',
        args: [
          '-c',
          [
            `cat mine; echo; cat ${home}/vault.key ../b/theirs`,
            `umount ${home}; unshare -m umount ${home}; cat ${home}/vault.key`,
            `unshare -Urm sh -c 'umount -l ${home}; mount -o remount,rw /; mount -o remount,rw /usr; touch /usr/made && echo wrote; cat ${home}/vault.key'`,
            'echo made > new; id -u; pwd',
          ].join('; '),
        ],
        cwd: own,
        confinesItself,
      })
      const exit = await child.ended
      const { text } = child.read()
      expect(exit.code).toBe(0)
      expect(text).toContain('my file')
      const user = confinesItself && process.getuid?.() === 0 ? 65_534 : process.getuid?.()
      expect(text).toContain(`${user}\n${own}\n`)
      expect(await readFile(join(own, 'new'), 'utf8')).toBe('made\n')
      expect(text).not.toMatch(/the-key|their file|wrote/)
      await rm(home, { recursive: true })
    },
  )
})

describe('the words of a program', () => {
  it('come as they are: nothing reads them as a command', async () => {
    expect((await run('echo', ['; echo pwn $(id)', '`id`', '$HOME', '*'])).text).toBe('; echo pwn $(id) `id` $HOME *\n')
  })
  it.each(['../bin/ls', '/usr/../bin/ls'])('"%s" is refused as a program', async (command) => {
    await expect(run(command)).rejects.toMatchObject({ code: 'forbidden' })
  })
  it.each(['no-such-program', '', 'a\0b', './not-there', '/etc'])('"%s" is told to be no program', async (command) => {
    await expect(run(command)).rejects.toMatchObject({ code: 'invalid_request' })
  })
  it('a program in the workspace is not found by its name alone', async () => {
    await writeFile(join(cwd, 'tool'), '#!/bin/sh\necho mine\n', { mode: 0o755 })
    await expect(run('tool')).rejects.toMatchObject({ code: 'invalid_request' })
    expect((await run('./tool')).text).toBe('mine\n')
  })
  it('a link is known by the name of what it leads to as well', async () => {
    const { names } = await createSpawn(scope).find('sh', cwd)
    expect(names[0]).toBe('sh')
    expect(names.length).toBeGreaterThan(0)
  })
})

describe('the end of a child', () => {
  it('comes with its exit code, and its output in order', async () => {
    const result = await run('sh', ['-c', 'echo one; echo two >&2; exit 3'])
    expect(result).toMatchObject({ code: 3, reason: 'exit', droppedBytes: 0 })
    expect(result.text.split('\n').sort().join('')).toBe('onetwo')
  })

  it('comes with the time limit, and takes what it forked with it', async () => {
    const mark = `31.${process.pid}7`
    const result = await run('sh', ['-c', `sleep ${mark} & setsid sleep ${mark} & sleep ${mark}`], { timeoutMs: 200 })
    expect(result.reason).toBe('timeout')
    expect(await alive(mark)).toEqual([])
  })

  it('comes by force when it does not listen', async () => {
    const result = await run('sh', ['-c', 'trap "" TERM; while :; do sleep 0.05; done'], { timeoutMs: 1000 })
    expect(result).toMatchObject({ reason: 'timeout', code: null })
    expect(result.durationMs).toBeGreaterThan(2900)
  })

  it('leaves nothing in the background', async () => {
    const mark = `32.${process.pid}7`
    const result = await run('sh', ['-c', `sleep ${mark} & setsid sleep ${mark} & echo started`])
    expect(result).toMatchObject({ code: 0, text: 'started\n' })
    expect(await alive(mark)).toEqual([])
  })

  it('comes with silence, when that is asked for', async () => {
    expect(await run('sleep', ['30'], { silenceMs: 100 })).toMatchObject({ reason: 'silence' })
  })

  it('comes when the caller gives up, and at once when it has already', async () => {
    const stop = new AbortController()
    const child = await start({ command: 'sleep', args: ['30'], signal: stop.signal })
    stop.abort(new Error('enough'))
    expect(await child.ended).toMatchObject({ reason: 'killed' })
    await expect(start({ command: 'sleep', args: ['30'], signal: stop.signal })).rejects.toThrow('enough')
  })

  it('comes with the plugin, and the ledger is empty then', async () => {
    const child = await start({ command: 'sleep', args: ['30'], background: true, timeoutMs: 60_000 })
    expect(scope.ledger()).toEqual([{ kind: 'process', label: `sleep ${child.pid}` }])
    await scope.close(0)
    expect(await child.ended).toMatchObject({ reason: 'killed' })
    expect(scope.ledger()).toEqual([])
    await expect(start({ command: 'true' })).rejects.toMatchObject({ code: 'service_unavailable' })
  })

  it('takes its line in the ledger with it', async () => {
    await run('true')
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
    expect(scope.ledger()).toEqual([])
  })

  it('comes no later than two minutes, whatever is asked', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const child = await start({ command: 'sleep', args: ['300'], timeoutMs: 10_000_000 })
    const limits = timers.mock.calls.map(([, ms]) => ms)
    timers.mockRestore()
    expect(limits).toContain(120_000)
    expect(Math.max(...limits.map(Number))).toBe(120_000)
    await child.kill()
  })
})

describe('what a child says', () => {
  it('is cut at its beginning, and not within a character', async () => {
    const result = await run('sh', ['-c', 'i=0; while [ $i -lt 3000 ]; do echo "line-ä-$i"; i=$((i+1)); done'], {
      outputBytes: 1001,
    })
    expect(Buffer.byteLength(result.text)).toBeLessThanOrEqual(1001)
    expect(result.text).toMatch(/line-ä-2999\n$/)
    expect(result.text).not.toContain('\uFFFD')
    expect(result.droppedBytes).toBeGreaterThan(10_000)
  })

  it('may be endless without filling the memory', async () => {
    const result = await run('yes', [], { timeoutMs: 400, outputBytes: 1024 })
    expect(result).toMatchObject({ reason: 'timeout' })
    expect(result.text.length).toBeLessThanOrEqual(1024)
    expect(result.droppedBytes).toBeGreaterThan(1_000_000)
  })

  it('is read in pieces, and it reads what is written to it', async () => {
    const child = await start({ command: 'cat', input: 'open' })
    await child.write('hello\n')
    const heard = await vi.waitUntil(() => child.read().text || undefined, { timeout: PATIENCE_MS })
    expect(heard).toBe('hello\n')
    await child.kill()
    expect(child.running).toBe(false)
    await expect(child.write('more')).rejects.toMatchObject({ code: 'conflict' })
  })
  it('is heard as it writes, and ends when its input does', async () => {
    const heard = { stdout: '', stderr: '' }
    const child = await start({
      command: 'sh',
      args: ['-c', 'echo oops >&2; cat'],
      input: 'open',
      onOutput: (bytes, from) => {
        heard[from] += Buffer.from(bytes).toString()
      },
    })
    await child.write('hello\n')
    child.closeInput()
    expect(await child.ended).toMatchObject({ code: 0, reason: 'exit' })
    expect(heard).toEqual({ stdout: 'hello\n', stderr: 'oops\n' })
  })
  it('has another home only when that is said', async () => {
    expect((await run('env', [], { home: '/srv' })).text).toContain('HOME=/srv\n')
    await expect(start({ command: 'env', home: 'srv' })).rejects.toThrow('absolute')
  })
  it('is there or not, which takes no start to know', () => {
    const spawn = createSpawn(scope)
    expect([spawn.has('sh'), spawn.has('no-such-program'), spawn.has('no-such-program', [cwd])]).toEqual([
      true,
      false,
      false,
    ])
  })
})
