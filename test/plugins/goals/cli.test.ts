import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

let home: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-goals-'))
  host = await startHost({ home, plugins: [...turnPlugins, 'providers/builtin', 'system', 'goals'] })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout"\n' })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['goal', ...args, '--home', home])

it('makes, lists as a tree, shows, updates and removes goals', async () => {
  expect((await svc('list')).stdout).toContain('There are no goals.')
  expect((await svc('add', 'Report', '--due', '2026-12-31T18:00:00Z')).stdout).toMatch(
    /^"Report" \(.{36}\) is made\.\n$/,
  )
  await svc('add', 'Sources', '--parent', 'Report', '--agent', 'scout', '--progress', '10')
  await svc('add', 'Text', '--parent', 'Sources')
  expect((await svc('list')).stdout).toMatch(
    /^GOAL +STATUS +DONE +DUE +ID\nReport +pending +0% +2026-12-31 18:00 UTC .*\n {2}Sources +pending +10% .*\n {4}Text /,
  )
  expect((await svc('update', 'Sources', '--status', 'in_progress', '--progress', '30')).stdout).toBe(
    '"Sources" is in progress, 30% done.\n',
  )
  expect((await svc('list', '--status', 'in_progress')).stdout).toMatch(/\nSources +in_progress +30%/)
  expect((await svc('show', 'Report')).stdout).toMatch(/status +pending, 0%\n.*\n- Sources: in_progress, 30%\n$/)
  expect((await svc('update', 'Text', '--parent', 'none')).stdout).toContain('"Text" is pending')
  expect((await svc('remove', 'Report')).stdout).toBe('"Report" is deleted with 1 below it.\n')
  expect((await svc('list', '--json')).stdout).toContain('"Text"')
})

it.each([
  ['an unknown goal', ['show', 'nothing'], 4, 'no goal "nothing"'],
  ['a change of nothing', ['update', 'Text'], 2, 'nothing to change'],
  ['a progress that is no number', ['update', 'Text', '--progress', 'much'], 1, 'progress'],
])('says what is wrong with %s', async (_name, args, code, text) => {
  expect(await svc(...args)).toMatchObject({ code, stderr: expect.stringContaining(text) })
})
