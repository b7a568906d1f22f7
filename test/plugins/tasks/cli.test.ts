import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

let home: string
let host: TestHost
let sleeper: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-tasks-'))
  host = await startHost({ home, plugins: [...turnPlugins, 'providers/builtin', 'system', 'queue', 'tasks'] })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "scout"\n' })
  sleeper = (await host.json<Json>('POST', '/api/agents', { manifest_toml: 'name = "sleeper"\n' })).body.agent_id
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere([...args, '--home', home])
const idIn = ({ stdout }: Answer): string => /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(stdout)?.[0] ?? ''

it('posts, lists, shows, cancels and retries a task', async () => {
  expect((await svc('task', 'list')).stdout).toContain('There are no tasks.')
  const id = idIn(await svc('task', 'post', 'Read\u001b[31m the news', '--description', 'all', '--to', 'scout'))
  await eventually(async () => expect((await svc('task', 'show', id)).stdout).toMatch(/status +completed\n/))
  const shown = (await svc('task', 'show', id)).stdout
  expect(shown).toMatch(/for +scout\n/)
  expect(shown).toMatch(/result +\S+/)
  expect(shown).not.toContain('\u001b[31m')
  expect((await svc('task', 'list', '--status', 'failed')).stdout).toContain('There are no such tasks.')
  const free = idIn(await svc('task', 'post', 'Water the plants', '--wait'))
  expect((await svc('task', 'list', '--status', 'pending')).stdout).toMatch(
    /^TITLE +STATUS +FOR +WORKS ON IT +ID\nWater the plants +pending +any +[0-9a-f-]{36}\n$/,
  )
  expect((await svc('task', 'cancel', free)).stdout).toBe('The task is cancelled.\n')
  expect(await svc('task', 'cancel', free)).toMatchObject({ stderr: expect.stringContaining('cancelled already') })
  expect((await svc('task', 'retry', free)).stdout).toBe('The task waits again.\n')
  expect((await svc('task', 'list', '--agent', 'scout', '--json')).stdout).toContain('"total": 1')
  expect(await svc('task', 'show', 'ffffffff')).toMatchObject({ code: 4, stderr: expect.stringContaining('no task') })
  expect(await svc('task', 'post', 'x', '--to', 'scuot')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('did you mean "scout"'),
  })
})

it('shows the queue, and cancels and retries a job of it', async () => {
  expect((await svc('queue', 'status')).stdout).toMatch(
    /LANE +WAITING +OLDEST +RUNNING +DONE\/MIN +DONE\/H +FAILED\/H +DEAD\n(.*\n)*task +0 +0 of 8 +1 +1 +0 +0\n/,
  )
  expect((await host.json('PUT', `/api/agents/${sleeper}/suspend`)).status).toBe(200)
  const id = idIn(await svc('task', 'post', 'later', '--to', 'sleeper'))
  const job = `${id}:0`
  await eventually(async () => expect((await svc('queue', 'list', 'task')).stdout).toContain(job))
  expect((await svc('queue', 'cancel', 'task', job)).stdout).toBe('The job is cancelled.\n')
  expect((await svc('queue', 'show', 'task', job)).stdout).toMatch(/state +cancelled\n/)
  expect((await svc('queue', 'list', '--state', 'cancelled')).stdout).toContain(job)
  expect((await svc('queue', 'retry', 'task', job)).stdout).toBe('The job runs again.\n')
  expect((await svc('queue', 'retry', 'task', '--dead')).stdout).toBe('0 jobs run again.\n')
  expect(await svc('queue', 'retry', 'task')).toMatchObject({ stderr: expect.stringContaining('--dead') })
  expect(await svc('queue', 'list', 'tsak')).toMatchObject({ stderr: expect.stringContaining('did you mean "task"') })
})
