import { existsSync } from 'node:fs'
import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import type { Answer } from '../../core/cli/here.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pack } from '../../support/plugin-registry.ts'
import { greeter } from './stage.ts'

let home: string
let work: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-plugin-cli-'))
  work = await mkdtemp(join(tmpdir(), 'svc-plugin-work-'))
  // Without an API key: code is installed by whoever may write to the home.
  host = await startHost({
    plugins: ['audit', 'plugin-admin'],
    home,
    memory: true,
    config: { plugins: { watch: false } },
  })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await Promise.all([home, work].map((folder) => rm(folder, { recursive: true, force: true })))
})
const svc = (...words: string[]): Promise<Answer> => runHere(['plugin', ...words])
const here = (...words: string[]): Promise<Answer> => svc(...words, '--home', home)

it('makes a plugin that its doctor finds sound, and installs, updates and removes it', async () => {
  expect(await svc('new', 'Weather Station')).toMatchObject({ code: 2 })
  expect(await svc('new', 'weather', '--path', work, '--description', 'It\'s "sunny" `today`')).toMatchObject({
    code: 0,
  })
  const folder = join(work, 'weather')
  expect((await readdir(folder)).toSorted()).toEqual([
    'README.md',
    'index.test.ts',
    'index.ts',
    'package.json',
    'tsconfig.json',
  ])
  expect((await svc('new', 'weather', '--path', work)).stderr).toContain('exists already')
  const sound = await svc('doctor', folder)
  expect(sound.code).toBe(0)
  expect(sound.stdout).toMatch(/permissions +ok +route:\/api\/weather\/\*, tool:weather/)

  expect(sound.stdout).toMatch(/access +ok +declared: .*\nisolation +ok +it can run in a process of its own/)

  const asked = await here('add', folder)
  expect(asked).toMatchObject({ code: 5, stderr: expect.stringContaining('route:/api/weather/*') as string })
  expect(await here('add', folder, '--yes')).toMatchObject({ code: 0, stdout: 'plugin "weather" 0.1.0 installed\n' })
  expect((await host.json('GET', '/api/weather/Ada')).body).toEqual({ text: 'Hello, Ada!' })
  expect((await here('add', folder, '--yes')).stderr).toContain('installed already')
  expect(await here('add', folder, '--yes', '--update')).toMatchObject({ stdout: 'plugin "weather" 0.1.0 updated\n' })
  const info = (await here('info', 'weather')).stdout
  expect(info).toMatch(/access +declared\nisolation +none\npermissions +route:.*tool:weather/)
  expect(info).toMatch(/tool +weather/)
  // Before the hundred that are built in.
  expect((await here('list')).stdout).toMatch(/^NAME .*\nweather +0\.1\.0 +loaded +declared +none /)
  expect((await here('doctor', 'weather')).code).toBe(0)
  expect(await here('remove', 'weather')).toMatchObject({ code: 0, stdout: 'plugin "weather" removed\n' })
  expect((await here('remove', 'weather')).code).toBe(4)
  expect((await readdir(join(home, 'plugins'))).filter((name) => name.startsWith('.proof'))).toEqual([])

  await appendFile(join(folder, 'index.ts'), '\nthrow new Error("rain")\n')
  const broken = await svc('doctor', folder, '--json')
  expect([broken.code, JSON.parse(broken.stdout).checks[0]]).toEqual([
    1,
    expect.objectContaining({ name: 'loads', state: 'fail', found: expect.stringContaining('rain') }),
  ])
})

it('runs the tests of a new plugin, and says when there are none', async () => {
  await svc('new', 'tested', '--path', work)
  const folder = join(work, 'tested')
  expect(await svc('test', folder)).toMatchObject({ code: 0 })
  await writeFile(
    join(folder, 'index.test.ts'),
    "import { test } from 'node:test'\ntest('a', () => Promise.reject(new Error('b')))\n",
  )
  expect(await svc('test', folder)).toMatchObject({ code: 1 })
  await rm(join(folder, 'index.test.ts'))
  expect(await svc('test', folder)).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('has no tests') as string,
  })
  expect(await svc('test', join(work, 'nowhere'))).toMatchObject({ code: 4 })
})

it.each([
  ['channel', 'channel-lake', 'service:channels'],
  ['provider', 'provider-lake', 'service:providers'],
])('makes a %s', async (kind, name, permission) => {
  await svc('new', 'lake', '--kind', kind, '--path', work)
  const { code, stdout } = await svc('doctor', join(work, name))
  expect([code, stdout]).toEqual([0, expect.stringContaining(permission)])
  expect(stdout).toMatch(/isolation +ok +it can run in a process of its own/)
})

it('makes a channel whose test finds that it does not send what the agent answers', async () => {
  await svc('new', 'river', '--kind', 'channel', '--path', work)
  const folder = join(work, 'channel-river')
  expect(await svc('test', folder)).toMatchObject({ code: 0 })
  const adapter = join(folder, 'adapter.ts')
  const code = await readFile(adapter, 'utf8')
  await writeFile(adapter, code.replace('chat: to.chatId, text', "chat: to.chatId, text: ''"))
  expect(await svc('test', folder)).toMatchObject({ code: 1 })
})

it('does not install for somebody who has neither a key nor a proof', async () => {
  const path = join(work, 'greeter.tgz')
  await writeFile(path, pack(greeter('x')))
  for (const body of [{ path }, { path, proof: crypto.randomUUID() }, { path, proof: '../../etc/passwd' }])
    expect((await host.json('POST', '/api/plugins/install', body)).status).toBeGreaterThanOrEqual(400)
  expect(await host.json('POST', '/api/plugins/install', { path })).toMatchObject({
    status: 403,
    body: { error: { message: expect.stringContaining('plugin add') as string } },
  })
  expect(existsSync(join(home, 'plugins', 'greeter'))).toBe(false)
})

it('neither removes nor makes a plugin for somebody who has neither a key nor a proof', async () => {
  const path = join(work, 'kept.tgz')
  await writeFile(path, pack(greeter('kept', { name: 'kept' })))
  expect(await here('add', path, '--yes')).toMatchObject({ code: 0 })
  const requests = [
    ['/api/plugins/uninstall', 'kept', 'plugin remove'],
    ['/api/extensions/uninstall', 'kept', 'plugin remove'],
    ['/api/plugins/scaffold', 'made', 'plugin new'],
  ] as const
  for (const [route, name, command] of requests) {
    expect(await host.json('POST', route, { name })).toMatchObject({
      status: 403,
      body: { error: { code: 'forbidden', message: expect.stringContaining(command) as string } },
    })
    expect((await host.json('POST', route, { name, proof: crypto.randomUUID() })).status).toBe(403)
  }
  expect((await readdir(join(home, 'plugins'))).toSorted()).toEqual(['kept'])
  expect((await host.json('GET', '/api/greeter')).body).toEqual({ text: 'kept' })

  const proof = crypto.randomUUID()
  await writeFile(join(home, 'plugins', `.proof-${proof}`), '')
  expect((await host.json('POST', '/api/plugins/scaffold', { name: 'made', proof })).status).toBe(201)
  expect((await host.json('POST', '/api/plugins/uninstall', { name: 'made', proof })).status).toBe(403)
  // Written here, and perhaps nowhere else.
  expect(await here('remove', 'made')).toMatchObject({ code: 5, stderr: expect.stringContaining('--yes') as string })
  for (const name of ['made', 'kept']) expect(await here('remove', name, '--yes')).toMatchObject({ code: 0 })
  expect(await readdir(join(home, 'plugins'))).toEqual([])
})
