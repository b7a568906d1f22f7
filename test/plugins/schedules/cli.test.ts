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
  home = await mkdtemp(join(tmpdir(), 'svc-schedules-'))
  host = await startHost({
    home,
    plugins: [
      ...turnPlugins,
      'providers/builtin',
      'system',
      'queue',
      'webhooks',
      'result-delivery',
      'workflows',
      'schedules',
    ],
  })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout"\n' })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['schedule', ...args, '--home', home])

it('makes, lists, shows, runs, stops and removes a schedule', async () => {
  expect((await svc('list')).stdout).toContain('There are no schedules.')
  const added = await svc('add', 'scout', 'weekdays at 9:30', 'What is new?', '--name', 'news', '--tz', 'Asia/Kolkata')
  expect(added.stdout).toMatch(/^"news" \([0-9a-f-]{36}\) runs 20\d\d-\d\d-\d\d 04:00 UTC for the first time\.\n$/)
  expect((await svc('list')).stdout).toMatch(
    /^NAME +WHEN +NEXT +LAST +ID\nnews +30 9 \* \* MON-FRI \(Asia\/Kolkata\) +20[\d-]+ 04:00 UTC +waiting +[0-9a-f-]{36}\n$/,
  )
  expect((await svc('show', 'news')).stdout).toMatch(/prompt +What is new\?\n/)
  expect((await svc('history', 'news')).stdout).toBe('It has not run yet.\n')
  const ran = await svc('run', 'news')
  expect([ran.code, ran.stderr]).toEqual([0, ''])
  expect((await svc('history', 'news')).stdout).toMatch(/done \(by hand\)/)
  expect((await svc('disable', 'news')).stdout).toBe('"news" is disabled.\n')
  expect((await svc('show', 'news')).stdout).toMatch(/state +disabled: disabled by hand\nnext +never\n/)
  expect((await svc('enable', 'news')).stdout).toMatch(/^"news" runs 20.* 04:00 UTC\.\n$/)
  expect((await svc('show', 'nwes')).stderr).toContain('did you mean "news"?')
  const every = await svc(
    'add',
    'scout',
    'every 90 minutes',
    'Look.',
    '--name',
    'watch',
    '--webhook',
    'https://a.example.com/',
  )
  expect(every.code).toBe(0)
  expect((await svc('show', 'watch')).stdout).toMatch(
    /agent +scout\nwhen +every 1 h 30 min\n[^]*delivery +https:\/\/a\.example\.com\/\n/,
  )
  await svc('remove', 'watch')
  expect((await svc('remove', 'news')).stdout).toBe('"news" is removed.\n')
  expect(await svc('show', 'news')).toMatchObject({ code: 4, stderr: expect.stringContaining('no schedule "news"') })
})

it('puts a workflow on a schedule', async () => {
  const steps = [{ name: 'a', agent_name: 'scout', prompt: 'echo {{input}}' }]
  await host.json('POST', '/api/workflows', { name: 'digest', steps })
  expect((await svc('add', 'scout', 'daily at 8', 'cats', '--workflow', 'digset')).stderr).toContain(
    'did you mean "digest"',
  )
  expect((await svc('add', 'scout', 'daily at 8', 'cats', '--workflow', 'digest')).code).toBe(0)
  expect((await svc('run', 'cats')).stdout).toBe('cats\n')
  expect((await svc('show', 'cats')).stdout).toMatch(/workflow +[0-9a-f-]{36}\n/)
})

it('says what is wrong with a time', async () => {
  const { code, stderr } = await svc('add', 'scout', 'now and then', 'What is new?')
  expect(code).not.toBe(0)
  expect(stderr).toContain('"now and then" is not understood')
})
