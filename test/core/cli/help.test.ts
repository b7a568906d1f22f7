import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { loadBuiltIns } from '../../../core/cli/built-ins.ts'
import type { CommandEntry } from '../../../core/cli/command.ts'
import { coreCommands } from '../../../core/cli/core-commands.ts'
import { runHere } from './here.ts'
import { runCli } from './process.ts'

const commands: Readonly<Record<string, CommandEntry>> = Object.assign(
  { ...coreCommands },
  ...(await loadBuiltIns()).map((cli) => cli.commands ?? {}),
)

function leaves(tree: Readonly<Record<string, CommandEntry>>, path: readonly string[] = []): string[][] {
  return Object.entries(tree).flatMap(([name, entry]) =>
    entry.commands ? leaves(entry.commands, [...path, name]) : [[...path, name]],
  )
}

describe('help', () => {
  it.each(leaves(commands).map((path) => [path.join(' '), path] as const))(
    'svc %s --help shows usage, flags, examples and exit codes',
    async (name, path) => {
      const { code, stdout, stderr } = await runHere([...path, '--help'])
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout).toMatch(
        new RegExp(
          `\\nUsage: svc ${name}[^]*\\nFlags:\\n[^]*\\nExamples:\\n[^]*svc ${path[0]}[^]*\\nExit codes:\\n +0 `,
        ),
      )
      expect((await runHere(['help', ...path])).stdout).toBe(stdout)
    },
  )
  it('lists every command when nothing is asked, and the commands of a group', async () => {
    const top = await runHere([])
    expect(top.code).toBe(0)
    for (const name of Object.keys(commands)) expect(top.stdout).toContain(`  ${name}`)
    expect((await runHere(['--help'])).stdout).toBe(top.stdout)
    expect(await runHere(['agent'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('svc agent <command>') as string,
    })
    expect(await runHere(['agent', '--help'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('spawn') as string,
    })
  })
  it('fits into a terminal of 80 columns, broken between words', async () => {
    const before = Object.getOwnPropertyDescriptor(process.stdout, 'columns')
    Object.defineProperty(process.stdout, 'columns', { value: 80, configurable: true })
    try {
      for (const words of [[], ['channels', 'add'], ['session', 'list']]) {
        const { stdout } = await runHere([...words, '--help'])
        const typed = /^ {2}(?:\S.*\| )?svc /
        expect(stdout.split('\n').filter((line) => line.length > 80 && !typed.test(line))).toEqual([])
      }
    } finally {
      if (before) Object.defineProperty(process.stdout, 'columns', before)
      else Reflect.deleteProperty(process.stdout, 'columns')
    }
  })
  it('names the nearest command or flag with exit code 2', async () => {
    expect(await runHere(['strat'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean `svc start`?') as string,
    })
    expect(await runHere(['agent', 'lst'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean `svc agent list`?') as string,
    })
    expect(await runHere(['xyzzy'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('see `svc --help`') as string,
    })
    expect(await runHere(['constructor'])).toMatchObject({ code: 2 })
    expect(await runHere(['status', '--jsn'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean --json?') as string,
    })
    expect(await runHere(['--frobnicate'])).toMatchObject({ code: 2 })
    expect(await runHere(['agent', 'show'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('agent is missing') as string,
    })
    expect(await runHere(['agent', 'new'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--template is missing\n  -> see `svc agent new --help`') as string,
    })
  })
  it('the version is one line, or JSON', async () => {
    expect((await runHere(['--version'])).stdout).toMatch(/^svc \d+\.\d+\.\d+ \(\S+, \S+, node v\d+\.\d+\.\d+\)\n$/)
    expect(JSON.parse((await runHere(['--version', '--json'])).stdout)).toMatchObject({
      name: 'svc',
      node: process.version,
    })
  })
  it('the real command makes no home by asking', async () => {
    const home = join(tmpdir(), `svc-never-${process.pid}`)
    const { code, stdout } = await runCli(['--version'], { env: { SVC_HOME: home } })
    expect([code, stdout.startsWith('svc ')]).toEqual([0, true])
    await expect(rm(home, { recursive: true })).rejects.toThrow('ENOENT')
  })
})

describe('completion', () => {
  it('completes commands, subcommands and flags in bash', async () => {
    const { stdout: script } = await runHere(['completion', 'bash'])
    const complete = async (...words: string[]): Promise<string[]> => {
      const list = words.map((word) => `'${word}'`).join(' ')
      const { stdout } = await promisify(execFile)('bash', [
        '-c',
        `${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ])
      return stdout.trim().split('\n')
    }
    expect(await complete('svc', 'st')).toEqual(['start', 'stop', 'status'])
    expect(await complete('svc', 'agent', 's')).toEqual(['spawn', 'show', 'skills'])
    expect(await complete('svc', 'start', '--log')).toEqual(['--log-level', '--log-format'])
    expect(await complete('svc', 'agent', '--json', 'kill', '--u')).toEqual(['--url'])
    expect(await complete('svc', 'models', '--tier', 'f')).toEqual(['frontier', 'fast'])
    expect(await complete('svc', 'channels', 'b')).toEqual(['bindings'])
    expect(await complete('svc', 'channels', 'bindings', 'a')).toEqual(['add'])
    expect(await complete('svc', 'channels', 'bindings', 'add', '--gui')).toEqual(['--guild'])
    expect(await complete('svc', 'completion', '')).toEqual(['bash', 'zsh', 'fish', '--help'])
  })
  it('leaves the variable alone that zsh ties to PATH, and completes with the first tab after it was loaded', async () => {
    const { stdout } = await runHere(['completion', 'zsh'])
    expect(stdout).not.toMatch(/\blocal\b.*\bpath\b/)
    expect(stdout).toContain('_svc "$@"')
  })
  it.each(['zsh', 'fish'])('knows %s', async (shell) => {
    const { code, stdout } = await runHere(['completion', shell])
    expect(code).toBe(0)
    for (const word of ['start', 'spawn', 'log-format']) expect(stdout).toContain(word)
  })
  it('completes below a group of a group in fish', async () => {
    const { stdout } = await runHere(['completion', 'fish'])
    const seen = (words: string): string => `__fish_seen_subcommand_from ${words}`
    expect(stdout).toContain(
      `-n '${seen('channels')}; and ${seen('bindings')}; and not ${seen('list add remove')}' -a 'remove'`,
    )
    expect(stdout).toContain(`-n '${seen('channels')}; and ${seen('bindings')}; and ${seen('add')}' -l guild`)
  })
  it('knows no other shell', async () => {
    expect(await runHere(['completion', 'powershell'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('bash, zsh, fish') as string,
    })
  })
})

describe('doctor without a daemon', () => {
  const check = async (home: string, env: Record<string, string> = {}) => {
    const { code, stdout } = await runHere(['doctor', '--home', home, '--json'], {
      SVC_LISTEN_ADDR: '127.0.0.1:0',
      ...env,
    })
    const { checks } = JSON.parse(stdout) as {
      checks: { name: string; state: string; found: string; advice?: string }[]
    }
    return { code, find: (name: string) => checks.find((one) => one.name === name) }
  }
  it('finds an empty place fine and leaves it empty', async () => {
    const home = join(tmpdir(), `svc-doctor-${process.pid}`)
    const { code, find } = await check(home)
    expect(code).toBe(0)
    expect([find('home')?.found, find('database')?.found]).toEqual([
      `${home} will be made at the first start`,
      expect.stringContaining('will be made') as string,
    ])
    await expect(rm(home, { recursive: true })).rejects.toThrow('ENOENT')
  })
  it('finds open permissions, unknown keys, a taken port and a damaged database, each with what to do', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-doctor-'))
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    try {
      await writeFile(join(home, 'config.toml'), 'log_levle = "x"\n', { mode: 0o644 })
      await mkdir(join(home, 'data'))
      await writeFile(join(home, 'data', 'svc.db'), 'no database')
      const { code, find } = await check(home, {
        SVC_LISTEN_ADDR: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      })
      expect(code).toBe(1)
      expect(find('home')).toMatchObject({
        state: 'warn',
        found: expect.stringContaining('config.toml') as string,
        advice: expect.stringContaining('chmod') as string,
      })
      expect(find('configuration')).toMatchObject({
        state: 'warn',
        found: expect.stringContaining('did you mean "log_level"?') as string,
      })
      expect(find('port')).toMatchObject({ state: 'fail', found: expect.stringContaining('EADDRINUSE') as string })
      expect(find('database')).toMatchObject({
        state: 'fail',
        found: expect.stringContaining('not an SQLite database') as string,
      })
    } finally {
      server.close()
      await rm(home, { recursive: true })
    }
  })
  it('refuses a value of a plugin that a start refuses', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-doctor-'))
    await writeFile(join(home, 'config.toml'), '[plugins.cluster]\nstop_wait_secs = -1\n')
    const { code, find } = await check(home)
    await rm(home, { recursive: true })
    expect(code).toBe(1)
    expect(find('configuration')).toMatchObject({
      state: 'fail',
      found: expect.stringMatching(/config\.toml:2: plugins\.cluster\.stop_wait_secs: .*-1/) as string,
    })
  })
  it('goes on with what can be checked when the configuration is broken', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-doctor-'))
    await writeFile(join(home, 'config.toml'), 'log_level = = 1\n')
    const { code, find } = await check(home)
    expect(code).toBe(1)
    expect(find('configuration')).toMatchObject({
      state: 'fail',
      found: expect.stringMatching(/config\.toml:1:\d+: not valid TOML/) as string,
    })
    expect(find('programs')).toMatchObject({
      found: expect.stringMatching(/^isolation: (?:bubblewrap|landlock|none); network: .*not covered: /),
    })
    expect(find('disk')).toBeDefined()
    await rm(home, { recursive: true })
  })
})

it('the schema of the configuration holds the sections of plugins', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-schema-'))
  const { code, stdout } = await runCli(['config', 'schema', '--home', home])
  expect(code).toBe(0)
  const schema = JSON.parse(stdout) as { properties: { plugins: { properties: Record<string, unknown> } } }
  expect(Object.keys(schema.properties.plugins.properties)).toEqual(
    expect.arrayContaining(['paths', 'disabled', 'kv', 'chat']),
  )
  await rm(home, { recursive: true })
})
