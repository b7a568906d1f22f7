import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadBuiltIns } from '../../../core/cli/built-ins.ts'
import { code, sources } from '../../architecture/sources.ts'
import { runHere } from './here.ts'
import type { Answer } from './here.ts'
import { runCli, startDaemon } from './process.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-commands-'))
})
afterEach(async () => {
  await rm(home, { recursive: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere([...args, '--home', home])

/** A plugin that must not be evaluated by the command line. */
const index = "throw new Error('the plugin was evaluated')\n"

async function addPlugin(
  name: string,
  files: Readonly<Record<string, string>>,
  parent = join(home, 'plugins'),
): Promise<string> {
  const folder = join(parent, name)
  await mkdir(join(folder, 'cli'), { recursive: true })
  for (const [file, text] of Object.entries({ 'index.ts': index, ...files })) await writeFile(join(folder, file), text)
  return folder
}
const cliOf = (name: string, commands: string): string =>
  `import { defineCli } from 'svc/cli'
export default defineCli({ name: '${name}', commands: { ${commands} } })
`
const greeting = cliOf(
  'greeting',
  `greet: {
    summary: 'Greet somebody',
    commands: { person: { summary: 'Greet one person', load: () => import('./cli/person.ts') } },
  }`,
)
const person = `import { defineCommand, exits, Failure, homeArgs, print, printJson } from 'svc/cli'
import { greetingOf } from './text.ts'
export default defineCommand({
  description: 'Greet one person.',
  args: {
    name: { type: 'positional', required: true, description: 'Whom to greet' },
    tone: { type: 'enum', options: ['warm', 'formal'], description: 'How to greet' },
    ...homeArgs,
  },
  examples: [['svc greet person Ada', 'a greeting']],
  run(args) {
    if (args.name === 'nobody') throw new Failure(exits.notFound, 'there is nobody to greet', 'name somebody')
    if (args.json) printJson({ greeting: greetingOf(args.name) })
    else print(greetingOf(args.name))
    return exits.ok
  },
})
`
const text = 'export const greetingOf = (name: string): string => `Hello, ${name}`\n'
const addGreeting = (parent?: string): Promise<string> =>
  addPlugin('greeting', { 'cli.ts': greeting, 'cli/person.ts': person, 'cli/text.ts': text }, parent)

describe('commands of a plugin in the home', () => {
  it('are listed, explained, suggested and run, and are gone with the plugin', async () => {
    const folder = await addGreeting()
    const top = await svc('--help')
    expect(top).toMatchObject({ code: 0, stderr: '' })
    expect(top.stdout).toMatch(/^ {2}greet +Greet somebody$/m)
    expect((await svc('greet', '--help')).stdout).toMatch(/^ {2}person +Greet one person$/m)
    expect((await svc('greet', 'person', '--help')).stdout).toMatch(
      /^Usage: svc greet person <name> \[flags\]$[^]*--tone <warm\|formal>/m,
    )
    expect(await svc('greet', 'person', 'Ada')).toEqual({ code: 0, stdout: 'Hello, Ada\n', stderr: '' })
    expect(JSON.parse((await svc('greet', 'person', 'Ada', '--json')).stdout)).toEqual({ greeting: 'Hello, Ada' })
    expect((await svc('gret', 'person')).stderr).toContain('did you mean `svc greet`?')

    await rm(folder, { recursive: true })
    expect((await svc('--help')).stdout).not.toContain('greet')
    expect(await svc('greet', 'person', 'Ada')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('unknown command "greet"') as string,
    })
  })

  it('fail with their own message, advice and exit code', async () => {
    await addGreeting()
    expect(await svc('greet', 'person', 'nobody')).toEqual({
      code: 4,
      stdout: '',
      stderr: 'svc: there is nobody to greet\n  -> name somebody\n',
    })
    expect(await svc('greet', 'person', 'Ada', '--tone', 'rude')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('it is one of warm, formal') as string,
    })
    expect(await svc('greet', 'person')).toMatchObject({ code: 2 })
  })

  it('complete in every shell', async () => {
    await addGreeting()
    const { stdout: script, stderr } = await svc('completion', 'bash')
    expect(stderr).toBe('')
    const complete = async (...words: string[]): Promise<string[]> => {
      const list = words.map((word) => `'${word}'`).join(' ')
      const { stdout } = await promisify(execFile)('bash', [
        '-c',
        `${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _svc; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ])
      return stdout.trim().split('\n')
    }
    expect(await complete('svc', 'gr')).toEqual(['greet'])
    expect(await complete('svc', 'greet', '')).toEqual(['person'])
    expect(await complete('svc', 'greet', 'person', '--to')).toEqual(['--tone'])
    expect(await complete('svc', 'greet', 'person', '--tone', '')).toEqual(['warm', 'formal'])
    for (const shell of ['zsh', 'fish']) expect((await svc('completion', shell)).stdout).toContain('person')
  })

  it('run in the real command', async () => {
    await addGreeting()
    expect(await runCli(['greet', 'person', 'Ada', '--home', home])).toMatchObject({
      code: 0,
      stdout: 'Hello, Ada\n',
      stderr: '',
    })
  })

  it('come from the folders of [plugins] paths too', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'svc-paths-'))
    try {
      await addGreeting(elsewhere)
      await writeFile(join(home, 'config.toml'), `[plugins]\npaths = ["${elsewhere}"]\n`)
      expect((await svc('greet', 'person', 'Ada')).stdout).toBe('Hello, Ada\n')
    } finally {
      await rm(elsewhere, { recursive: true })
    }
  })
})

describe('a plugin whose commands cannot be used', () => {
  it('is named with its error when its list throws, and costs only itself', async () => {
    await addGreeting()
    const folder = await addPlugin('broken', { 'cli.ts': "throw new Error('no luck today')\n" })
    const { code, stdout, stderr } = await svc('--help')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^ {2}greet +Greet somebody$/m)
    expect(stderr).toMatch(/^svc: warning: [^\n]*no luck today[^\n]*\n$/)
    expect(stderr).toContain(folder)
    expect(await svc('greet', 'person', 'Ada')).toMatchObject({ code: 0, stdout: 'Hello, Ada\n' })
    expect(await svc('completion', 'bash')).toMatchObject({ code: 0 })
    expect((await svc('plugin', '--help')).stderr).toBe('')
  })

  it.each([
    ['export default 1\n', 'defineCli'],
    [cliOf('odd', "'a b': { summary: 'x', load: () => import('./x.ts') }"), 'small letters'],
    [cliOf('odd', "a: { load: () => import('./x.ts') }"), 'summary'],
    [cliOf('odd', "a: { summary: 'x' }"), 'load or commands'],
    [
      cliOf('odd', "a: { summary: 'x', commands: { b: { summary: 'x', commands: { c: { summary: 'x' } } } } }"),
      'two words',
    ],
  ])('is told what is wrong with its list: %j', async (cli, message) => {
    await addPlugin('odd', { 'cli.ts': cli })
    expect((await svc('--help')).stderr).toContain(message)
  })

  it('is named when the code of one command is broken', async () => {
    await addPlugin('odd', {
      'cli.ts': cliOf('odd', "odd: { summary: 'Odd', load: () => import('./cli/odd.ts') }"),
      'cli/odd.ts': "throw new Error('not today')\n",
    })
    expect(await svc('odd')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the command "odd" cannot be loaded: not today') as string,
    })
    const { code, stdout, stderr } = await svc('completion', 'bash')
    expect(code).toBe(0)
    expect(stdout).toContain(' odd ')
    expect(stderr).toContain('not today')
    await writeFile(join(home, 'plugins', 'odd', 'cli', 'odd.ts'), 'export default {}\n')
    expect((await svc('odd')).stderr).toContain('defineCommand()')
  })

  it('cannot bring a command of svc or of a built-in plugin', async () => {
    const commands = ['status', 'agent'].map(
      (name) => `${name}: { summary: 'Mine', load: () => import('./cli/mine.ts') }`,
    )
    await addPlugin('greedy', { 'cli.ts': cliOf('greedy', commands.join(', ')) })
    const { stdout, stderr } = await svc('--help')
    expect(stdout).not.toContain('Mine')
    expect(stderr).toMatch(/the command "status" of plugin "greedy" is left out: it is a command of svc itself/)
    expect(stderr).toMatch(/the command "agent" of plugin "greedy" is left out: [^\n]* built-in plugin "agents"/)
    expect((await svc('agent', 'list')).code).toBe(3)
  })

  it('is named with the other one that brings the same command', async () => {
    await addGreeting()
    await addPlugin('other', { 'cli.ts': cliOf('other', "greet: { summary: 'Other', load: () => import('./x.ts') }") })
    expect(await svc('greet', 'person', 'Ada')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/"greet": greeting, other\n {2}-> .*plugins\.disabled/) as string,
    })
    expect((await svc('--help')).stderr).toContain('"greet" comes from more than one plugin: "greeting", "other"')
    await writeFile(join(home, 'config.toml'), '[plugins]\ndisabled = ["other"]\n')
    expect(await svc('greet', 'person', 'Ada')).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('a disabled plugin', () => {
  it('hides its commands and says where they are', async () => {
    await addGreeting()
    await writeFile(join(home, 'config.toml'), '[plugins]\ndisabled = ["greeting", "agents"]\n')
    const { stdout } = await svc('--help')
    expect(stdout).not.toContain('greet')
    expect(stdout).not.toMatch(/^ {2}agent /m)
    for (const [command, plugin] of [
      ['greet', 'greeting'],
      ['agent', 'agents'],
    ] as const)
      expect(await svc(command, 'list')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(
          `the command "${command}" comes from plugin "${plugin}", which is disabled`,
        ) as string,
      })
    expect((await svc('completion', 'bash')).stdout).not.toContain('greet')
  })

  it('is none of another daemon that is named', async () => {
    await writeFile(join(home, 'config.toml'), '[plugins]\ndisabled = ["agents"]\n')
    expect(await svc('agent', 'list', '--url', 'http://127.0.0.1:1')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('no answer from http://127.0.0.1:1') as string,
    })
  })

  it('may be named by a variable', async () => {
    const env = { SVC_PLUGINS__DISABLED: 'chat' }
    expect((await runHere(['chat', '--home', home], env)).stderr).toContain('comes from plugin "chat"')
  })
})

describe('checks and status of plugins', () => {
  const observed = `import { defineCli } from 'svc/cli'
export default defineCli({
  name: 'observed',
  checks: { weather: { load: () => import('./cli/check.ts') }, broken: { load: () => import('./cli/none.ts') } },
  status: { load: () => import('./cli/status.ts') },
})
`
  const check = `import { passed, warned } from 'svc/cli'
export default async ({ config, daemon }) =>
  daemon ? passed('asked ' + new URL(daemon.url).hostname) : warned('level ' + config.log_level, 'look outside')
`
  const status = "export default ({ status }) => [['weather', 'the daemon is ' + status]]\n"

  it('are part of svc doctor and svc status', async () => {
    await addPlugin('observed', { 'cli.ts': observed, 'cli/check.ts': check, 'cli/status.ts': status })
    await rm(join(home, 'plugins', 'observed', 'index.ts'))
    await writeFile(
      join(home, 'plugins', 'observed', 'index.ts'),
      "import { definePlugin } from 'svc/sdk'\nexport default definePlugin({ name: 'observed', version: '1.0.0', setup() {} })\n",
    )
    const doctor = async (): Promise<{ name: string; state: string; found: string }[]> => {
      const { stdout } = await runHere(['doctor', '--json', '--home', home], { SVC_LISTEN_ADDR: '127.0.0.1:0' })
      return (JSON.parse(stdout) as { checks: { name: string; state: string; found: string }[] }).checks
    }
    const before = await doctor()
    expect(before.find(({ name }) => name === 'weather')).toEqual({
      name: 'weather',
      state: 'warn',
      found: 'level info',
      advice: 'look outside',
    })
    expect(before.find(({ name }) => name === 'broken')).toMatchObject({
      state: 'warn',
      found: expect.stringContaining('the check of plugin "observed" failed') as string,
    })
    expect(before.map(({ name }) => name)).toEqual(expect.arrayContaining(['database', 'providers', 'disk']))
    await using daemon = await startDaemon(home)
    // A loaded machine may take longer to answer than a check waits.
    await expect
      .poll(async () => (await doctor()).find(({ name }) => name === 'weather'))
      .toMatchObject({ state: 'ok', found: `asked ${new URL(daemon.url).hostname}` })
    const { stdout } = await svc('status')
    expect(stdout).toMatch(/^agents +1$[^]*^model +[^]*^weather +the daemon is running$[^]*^database +connected$/m)
  })
})

it('the command line of the core names no feature', async () => {
  const builtIns = await loadBuiltIns()
  const commands = builtIns.flatMap((cli) => Object.keys(cli.commands ?? {}))
  // Plugins themselves are the subject of the core, a file, a database, the log, an operating system or how a command is
  // used is not only what a plugin or a command of that name is about, the tables of a database are migrated, and files
  // are opened.
  const words = [...builtIns.map(({ name }) => name), ...commands]
    .map((word) => word.replace(/s$/, ''))
    .filter((word) => !['plugin', 'file', 'database', 'log', 'system', 'usage', 'migrate', 'open'].includes(word))
  // The address of the page is printed by whatever serves, and the advice for a damaged database names how to replace
  // it.
  const known = [
    /chat page/,
    /commandLine\(`restore /,
    /commandName\(\)} restore /,
    /backup in its place/,
    /pg_dump and restore it with pg_restore/,
    /hosts autonomous agents/,
    // The section that only daemons have which are to share a database.
    /\? '\[plugins\.cluster\]'/,
    /Object\.hasOwn\(config\.plugins, 'cluster'\)/,
    /\bby hand\b/,
    // A database without a file.
    /':memory:'/,
    // That of the person at the terminal.
    /process\/browser\.ts/,
    /\b(?:a|No) browser\b/,
    // An item of a Markdown list with a box.
    /item\.task/,
  ]
  const found = sources('core/cli').flatMap(({ path, text }) =>
    code(text)
      .split('\n')
      .filter((line) => new RegExp(`\\b(?:${words.join('|')})s?\\b`, 'i').test(line))
      .filter((line) => !known.some((pattern) => pattern.test(line)))
      .map((line) => `${path}: ${line.trim()}`),
  )
  expect(found).toEqual([])
})

it('asking for help makes no home', async () => {
  const paths = join(home, 'elsewhere')
  await addGreeting(paths)
  const env = { SVC_PLUGINS__PATHS: paths, SVC_HOME: join(home, 'none') }
  expect((await runHere(['--help'], env)).stdout).toMatch(/^ {2}greet +Greet somebody$/m)
  expect((await runHere(['greet', 'person', 'Ada'], env)).stdout).toBe('Hello, Ada\n')
  expect(await readdir(home)).toEqual(['elsewhere'])
})
