import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startClawHub } from '../../support/fake-clawhub.ts'
import type { FakeClawHub } from '../../support/fake-clawhub.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { skillText } from './stage.ts'

let home: string
let host: TestHost
let hub: FakeClawHub
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-skill-cli-'))
  hub = await startClawHub()
  host = await startHost({
    home,
    plugins: ['audit', 'agents', 'system', 'skills'],
    config: {
      outbound: { allow: ['127.0.0.1'] },
      plugins: { skills: { clawhub_url: hub.origin, marketplace_url: hub.origin } },
    },
  })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await hub[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
afterEach(() => vi.restoreAllMocks())
const svc = (...args: string[]): Promise<Answer> => runHere(['skill', ...args, '--home', home])

it('makes, lists, finds, shows, tests, installs and removes skills', async () => {
  const made = await svc('create', 'tides', '--description', 'Knows the sea.')
  expect(made.stdout).toBe(`skill "tides" is made in ${join(home, 'skills', 'tides')}\n`)
  expect((await svc('list')).stdout).toMatch(/\ntides +0\.1\.0 +prompt_only +home +yes +Knows the sea\.\n/)
  expect((await svc('search', 'sea knows')).stdout).toContain('tides')
  expect((await svc('search', 'sea mountains')).stdout).toBe('No skill has all these words.\n')
  expect((await svc('info', 'tides')).stdout).toMatch(/skill +tides 0\.1\.0\n[\s\S]*may use +nothing[\s\S]*# tides/)
  expect((await svc('test', 'tides')).stdout).toBe('ok 1: text\n1 passed, 0 failed\n')
  const source = join(home, 'moons')
  await mkdir(source)
  await writeFile(join(source, 'SKILL.md'), skillText('moons', 'Knows moons.', 'Use sudo with care.'))
  const asked = await svc('install', source)
  expect(asked).toMatchObject({ code: 5, stderr: expect.stringContaining('add --yes') })
  expect(asked.stderr).toContain('dangerous command: "sudo"')
  expect((await svc('install', source, '--yes')).stdout).toBe('skill "moons" 0.1.0 installed\n')
  expect((await svc('install', source, '--yes', '--update')).stdout).toBe('skill "moons" 0.1.0 updated\n')
  expect((await svc('remove', 'moons')).stdout).toBe('skill "moons" is uninstalled\n')
  expect((await svc('list', '--json')).stdout).not.toContain('moons')
})

it('prints nothing of a skill that a terminal would obey', async () => {
  const source = join(home, 'loud')
  await mkdir(source)
  const toml =
    '[skill]\nname = "loud"\nversion = "1\\u001b[2J"\n[runtime]\ntype = "wasm"\nentry = "a.wasm"\n' +
    '[[tools.provided]]\nname = "go"\ndescription = "Goes"\n'
  const cases = '[{ "text": "\\u001b[3J" }]'
  const files = {
    'SKILL.md': skillText('loud', 'Is loud.', 'Look: \u001b[2J'),
    'skill.toml': toml,
    'a.wasm': '',
    'skill.test.json': cases,
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(source, name), text)
  await mkdir(join(home, 'skills', 'odd\u001b[2J'), { recursive: true })
  const answers = [
    await svc('install', source, '--yes'),
    await svc('list'),
    await svc('info', 'loud'),
    await svc('test', 'loud'),
  ]
  expect(answers[0]?.stdout).toMatch(/^skill "loud" 1.*\[2J installed\n$/)
  expect(answers[1]?.stderr).toMatch(/^svc: warning: not usable: .*odd.*SKILL\.md: is missing/)
  expect(answers[3]?.stdout).toContain('failed 1: text')
  expect(answers.filter(({ stdout, stderr }) => `${stdout}${stderr}`.includes('\u001b'))).toEqual([])
  await rm(join(home, 'skills', 'odd\u001b[2J'), { recursive: true })
})

it('finds, shows and installs skills of the hub and of the marketplace', async () => {
  const files = { 'SKILL.md': skillText('gif', 'Finds GIFs.', 'Use `WebSearch`.') }
  hub.skills.push({ slug: 'gif', owner: 'ada', summary: 'Finds GIFs', files })
  const repository = { repo: 'ada/skills', commit: '0a1b2c3d', path: 'rivers' }
  hub.skills.push({ slug: 'r', summary: 'Knows rivers', files: { 'SKILL.md': skillText('rivers') }, repository })
  expect((await svc('search', 'hub:GIFs')).stdout).toMatch(/\nhub:@ada\/gif +1\.0\.0 +Finds GIFs\n/)
  expect((await svc('search', 'hub:nothing')).stdout).toBe('The hub has none.\n')
  expect((await svc('search', 'marketplace:rivers')).stdout).toMatch(
    /\nmarketplace:ada\/skills +7 stars +Knows rivers\n/,
  )
  expect((await svc('info', 'hub:@ada/gif')).stdout).toMatch(/skill +gif 1\.0\.0\n[\s\S]*SKILL\.md:\n---\nname: gif/)
  expect((await svc('install', 'hub:@ada/gif')).stderr).toMatch(/tools +WebSearch is web_search/)
  expect((await svc('install', 'hub:@ada/gif', '--yes')).stdout).toBe('skill "gif" 1.0.0 installed\n')
  expect((await svc('install', 'marketplace:ada/skills/rivers', '--yes')).stdout).toBe(
    'skill "rivers" 0.1.0 installed\n',
  )
  expect((await svc('info', 'hub:none')).stderr).toMatch(/ClawHub \(http:.*\) has none/)
})

it('lists, sets and removes values of variables, which come by standard input', async () => {
  const config = (...args: string[]): Promise<Answer> => svc('config', ...args)
  expect((await config('list', 'api-tester')).stdout).toMatch(
    /\nAPI_TESTER_TOKEN +no +nobody +Bearer token for the API under test\n/,
  )
  const type = (text: string) => vi.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from([text]) as never)
  type('the-secret-value\n')
  expect(await config('set', 'api-tester', 'API_TESTER_TOKEN')).toEqual({
    code: 0,
    stdout: 'API_TESTER_TOKEN of "api-tester" is set; tools of the skill have it from their next call\n',
    stderr: '',
  })
  const listed = await config('list', 'api-tester', '--json')
  expect(JSON.parse(listed.stdout).variables[0]).toMatchObject({ name: 'API_TESTER_TOKEN', source: 'vault' })
  expect(listed.stdout).not.toContain('the-secret-value')
  expect((await config('list', 'api-tester')).stdout).toMatch(/\nAPI_TESTER_TOKEN +no +the vault /)
  expect((await config('remove', 'api-tester', 'API_TESTER_TOKEN')).stdout).toBe(
    'API_TESTER_TOKEN of "api-tester" is removed\n',
  )
  expect((await config('remove', 'api-tester')).stderr).toContain('name one, or add --all')
  expect((await config('remove', 'api-tester', '--all')).stdout).toBe('all values of "api-tester" are removed\n')
  expect((await config('list', 'api-tester')).stdout).toMatch(/\nAPI_TESTER_TOKEN +no +nobody /)
  // Before anybody types a value in vain.
  expect((await config('set', 'api-tester', 'API_TESTER_TOKN')).stderr).toContain('did you mean "API_TESTER_TOKEN"')
  type('')
  expect((await config('set', 'api-tester', 'API_TESTER_TOKEN')).stderr).toContain('no value was given')
  expect((await config('list', 'tides')).stdout).toBe('The skill "tides" has no variables.\n')
})

it.each([
  ['a skill that is not there', ['info', 'tidse'], 'no skill "tidse"; did you mean "tides"'],
  ['a folder that is not there', ['install', '/none', '--yes'], '/none does not exist'],
  ['a name that is none', ['create', 'Tides', '--description', 'x'], 'lower-case letters'],
  ['a skill without tests', ['test', 'moons'], 'There is no skill "moons"'],
])('says what is wrong with %s', async (_name, args, text) => {
  const answer = await svc(...args)
  expect(answer.code).not.toBe(0)
  expect(answer.stderr).toContain(text)
})

it('gives skills to an agent and takes them, and says which names there are not', async () => {
  const skills = (...args: string[]) => runHere(['agent', 'skills', 'assistant', ...args, '--home', home])
  expect((await skills()).stdout).toMatch(/^agent "assistant" has all \d+ skills; .*skill list.* names them\n$/)
  expect((await skills('set', 'git-expert')).stdout).toBe('agent "assistant" has one skill:\ngit-expert\n')
  expect((await skills('add', 'docker, regex-expert')).stdout).toContain(
    '3 skills:\ngit-expert\ndocker\nregex-expert\n',
  )
  expect((await skills('remove', 'git-expert,docker')).stdout).toContain('one skill:\nregex-expert\n')
  expect(await skills('remove', 'docker')).toMatchObject({ code: 4, stderr: expect.stringContaining('has no skill') })
  const unknown = await skills('add', 'git-expertt')
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringMatching(/did you mean "git-expert"\?; .*skill list/) })
  expect(unknown.stderr).not.toContain('ansible')
  expect((await skills('remove', 'regex-expert')).stdout).toBe('agent "assistant" has no skills\n')
  expect((await skills('set', 'all', '--json')).stdout).toContain('"mode": "all"')
  expect((await skills('remove', 'docker', '--json')).stdout).toContain('"mode": "allowlist"')
  for (const args of [['add'], ['list', 'docker'], ['drop', 'docker']]) expect((await skills(...args)).code).toBe(2)
})

it('exits with 2 for a name that cannot be one of a skill', async () => {
  for (const args of [['Bad-Name'], ['good', '--runtime', 'wasm']])
    expect(await svc('create', ...args, '--description', 'x')).toMatchObject({ code: 2 })
})
