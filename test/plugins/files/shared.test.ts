import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { SHARED_VAULT_KEY } from '../../support/host.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { openTools } from '../../support/tool-stage.ts'
import type { ToolStage } from '../../support/tool-stage.ts'

/** One folder that all daemons have mounted. */
let database: TestDatabase
let folder: string
beforeAll(async () => {
  database = await createTestDatabase()
  // Folders of the shell are none in /dev/shm.
  folder = await mkdtemp('/var/tmp/svc-shared-')
})
afterAll(async () => {
  await database?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

interface Options {
  readonly url?: string
  readonly shell?: object
}
function open(path: string, { url = database.url, shell = {} }: Options = {}): Promise<ToolStage> {
  const config = { database_url: url, plugins: { files: { path }, shell } }
  return openTools(['shell', 'approvals', 'system'], { memory: false, config })
}
const problems = async ({ host }: ToolStage): Promise<readonly string[]> =>
  (await host.json('GET', '/api/cluster')).body.members.flatMap(
    (member: { problems: readonly string[] }) => member.problems,
  )

it('files and programs of two daemons meet in it, and each program sees its own folder only', async () => {
  const mounted = join(folder, 'mounted')
  await mkdir(mounted)
  await using one = await open(mounted)
  await using two = await open(mounted)
  const agent = await one.spawn('worker', 'shell = ["*"]')
  const other = await one.spawn('other', 'shell = ["*"]')
  await one.call(agent, 'file_write', { path: 'a.txt', content: 'written at one' })
  await two.call(other, 'file_write', { path: 'b.txt', content: 'secret' })
  expect((await two.call(agent, 'file_read', { path: 'a.txt' })).text).toBe('written at one')
  const { text } = await two.call(agent, 'shell_exec', { command: 'cat a.txt' })
  expect(text).toContain('written at one')
  const stolen = await two.call(agent, 'shell_exec', { command: `cat ${mounted}/${other}/b.txt` })
  expect(stolen.text).not.toContain('secret')
  expect((await readdir(mounted)).toSorted()).toEqual(['.mount', agent, other].toSorted())
  expect(await problems(one)).toEqual([])
  await expect(open(mounted, { shell: { read: [mounted] } })).rejects.toThrow(`contains the daemon's own ${mounted}`)
})

it('one that is not mounted is refused: nothing is written below its mount point', async () => {
  const missing = join(folder, 'missing')
  await expect(open(missing)).rejects.toThrow(`plugins.files.path: ${missing} cannot be used`)
  const empty = join(folder, 'empty')
  await mkdir(empty)
  await expect(open(empty)).rejects.toThrow('has no file .mount')
  expect(await readdir(empty)).toEqual([])
  await writeFile(join(folder, 'file'), '')
  await expect(open(join(folder, 'file'))).rejects.toThrow('is no folder')
  // Nobody can write there.
  await expect(open('/proc/sys')).rejects.toThrow('cannot be written and replaced')
  await writeFile(join(empty, '.mount'), '4e0d0a52-5f0e-4b0c-9d55-000000000000\n')
  await using begun = await open(empty)
  await using first = await open(join(folder, 'mounted'))
  expect(await problems(begun)).toEqual([
    expect.stringContaining('mount one folder in all of them (plugins.files.path)'),
  ])
  expect(await problems(first)).toHaveLength(1)
})

it('svc cluster join tries the folder of the home, which has to be that of the others', async () => {
  await using made = await createTestDatabase()
  const mounted = join(folder, 'mounted')
  const one = await open(mounted, { url: made.url })
  await one[Symbol.asyncDispose]()
  const id = await readFile(join(mounted, '.mount'), 'utf8')
  const home = join(folder, 'home')
  const join_ = async (path?: string) => {
    await rm(home, { recursive: true, force: true })
    await mkdir(home, { mode: 0o700 })
    const lines = path === undefined ? '' : `[plugins.files]\npath = "${path}"`
    await writeFile(join(home, 'config.toml'), lines, { mode: 0o600 })
    return await runHere(['cluster', 'join', made.url, '--home', home], { SVC_VAULT_KEY: SHARED_VAULT_KEY })
  }
  const local = await join_()
  expect([local.code, local.stderr]).toEqual([5, expect.stringContaining(`lie in the folder whose .mount has ${id}`)])
  expect(local.stderr).toContain('name it with plugins.files.path')
  expect((await join_(join(folder, 'nowhere'))).stderr).toContain('nowhere cannot be used')
  const other = join(folder, 'other')
  await mkdir(other)
  expect((await join_(other)).stderr).toContain('has no file .mount')
  await writeFile(join(other, '.mount'), '5e0d0a52-5f0e-4b0c-9d55-000000000000')
  expect((await join_(other)).stderr).toContain(`and in the folder ${other} for this home`)
  expect((await join_('/proc/sys')).stderr).toContain('cannot be written and replaced')
  expect((await join_(mounted)).code).toBe(0)
})

it('takes nothing while another folder is in its place or none is, and goes on when it is back', async () => {
  const mounted = join(folder, 'mounted')
  const real = join(folder, 'real')
  await using one = await open(mounted)
  await using two = await open(mounted)
  const agent = await one.spawn('away')
  await one.call(agent, 'file_write', { path: 'kept.txt', content: 'kept' })
  const refused = async (): Promise<void> => {
    const { text, failed } = await one.call(agent, 'file_write', { path: 'lost.txt', content: 'lost' })
    expect({ text, failed }).toEqual({
      text: expect.stringContaining('the folder of plugins.files.path is not mounted'),
      failed: true,
    })
    const read = await one.host.json('GET', `/api/agents/${agent}/files/SOUL.md`)
    expect(read.status).toBe(503)
    const ready = await one.host.json('GET', '/api/ready')
    expect(ready.status).toBe(503)
    expect(JSON.stringify(ready.body)).not.toContain(mounted)
    expect((await one.host.json('GET', '/api/health')).body.status).toBe('degraded')
    expect((await one.host.json('GET', '/api/health/detail')).body.config_warnings).toContainEqual(
      expect.stringContaining(`files: plugins.files.path: ${mounted}`),
    )
  }
  await rename(mounted, real)
  await refused()
  await expect(stat(mounted)).rejects.toThrow('ENOENT')
  expect(await problems(two)).toEqual([expect.stringContaining('mount one folder in all of them')])
  await mkdir(mounted)
  await refused()
  await writeFile(join(mounted, '.mount'), 'of another folder')
  await refused()
  expect(await readdir(mounted)).toEqual(['.mount'])
  await rm(mounted, { recursive: true })
  await rename(real, mounted)
  expect((await one.call(agent, 'file_read', { path: 'kept.txt' })).text).toBe('kept')
  expect((await one.host.json('GET', '/api/ready')).status).toBe(200)
  expect(await problems(two)).toEqual([])
})

it('is for daemons that share a database, and has to be absolute', async () => {
  await expect(open(folder, { url: `sqlite:${join(folder, 'svc.db')}` })).rejects.toThrow(
    'plugins.files.path is for daemons that share a PostgreSQL database',
  )
  await expect(open('relative')).rejects.toThrow('an absolute folder')
})
