import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

let home: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-triggers-'))
  host = await startHost({
    home,
    plugins: [...turnPlugins, 'providers/builtin', 'system', 'queue', 'result-delivery', 'triggers'],
  })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "watcher"\n' })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere(['trigger', ...args, '--home', home])

it('makes, lists, shows, stops and removes a trigger, and says what it fired for', async () => {
  expect((await svc('list')).stdout).toContain('There are no triggers.')
  const added = await svc('add', 'watcher', 'agent_spawned', 'New: {{event}}', '--match', 'scout-*', '--max', '3')
  const id = /^Trigger ([0-9a-f-]{36}) waits for agent_spawned\.\n$/.exec(added.stdout)?.[1] ?? ''
  expect([added.code, id]).toEqual([0, expect.stringMatching(/./)])
  expect((await svc('list')).stdout).toMatch(/\nagent_spawned scout-\* +watcher +0 of 3 +enabled +[0-9a-f-]{36}\n$/)
  const short = id.slice(0, 20)
  expect((await svc('history', short)).stdout).toBe('It has matched nothing yet.\n')
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout-1"\n' })
  await eventually(async () => expect((await svc('history', short)).stdout).toMatch(/agent_spawned +done/))
  expect((await svc('show', short)).stdout).toMatch(/fired +1 of 3\n/)
  expect((await svc('disable', short)).stdout).toBe('The trigger for agent_spawned scout-* is disabled.\n')
  expect((await svc('show', short)).stdout).toMatch(/state +disabled: disabled by hand\n/)
  expect((await svc('enable', short)).stdout).toBe('The trigger for agent_spawned scout-* is enabled.\n')
  expect((await svc('remove', short)).stdout).toBe('The trigger for agent_spawned scout-* is removed.\n')
  expect(await svc('show', short)).toMatchObject({ code: 4, stderr: expect.stringContaining('there is no trigger') })
})

it('says what is wrong with a pattern', async () => {
  const unknown = await svc('add', 'watcher', 'agent_spawn')
  expect([unknown.code === 0, unknown.stderr]).toEqual([false, expect.stringContaining('"agent_spawned"')])
  const useless = await svc('add', 'watcher', 'lifecycle', '--match', 'x')
  expect([useless.code === 0, useless.stderr]).toEqual([false, expect.stringContaining('leave out --match')])
})
