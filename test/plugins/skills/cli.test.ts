import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { skillText } from './stage.ts'

let home: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-skill-cli-'))
  host = await startHost({ home, plugins: ['audit', 'agents', 'system', 'skills'] })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
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
