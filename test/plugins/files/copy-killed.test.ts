import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { builtCommand, compiledCode } from '../../support/built-package.ts'
import { startHost } from '../../support/host.ts'
import { KEY, startS3 } from '../../support/s3-server.ts'
import type { S3Server } from '../../support/s3-server.ts'

/** `svc files copy` whose process is killed: what it left is completed by the next one, and never taken for whole. */
const FILES = 300
let s3: S3Server
let home: string
let agent: string
beforeAll(async () => {
  s3 = await startS3()
  home = await mkdtemp(join(tmpdir(), 'svc-copy-killed-'))
  await mountAt('folder')
  await using host = await startHost({ home, listen: false, plugins: ['audit', 'usage', 'agents', 'cluster', 'files'] })
  agent = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "filer"' })).body.agent_id
  await host.json('PUT', `/api/agents/${agent}/files/first.txt`, { content: 'first' })
  for (let index = 0; index < FILES; index++) {
    const folder = join(workspace(), `d${index % 10}`)
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, `f${index}.txt`), contentOf(index))
  }
})
afterAll(async () => {
  await s3?.[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

const workspace = () => join(home, 'data/workspaces', agent)
const contentOf = (index: number): string => `file ${index} `.repeat(500)
const mountAt = (mount: string) =>
  writeFile(
    join(home, 'config.toml'),
    `[plugins.files]\nmount = "${mount}"\n[plugins.files.s3]\nendpoint = "${s3.endpoint}"\nbucket = "${s3.bucket}"\n` +
      `access_key_id = "${KEY}"\nsecret_access_key = "${KEY}"\nmin_object_bytes = 100\nattempts = 1\n`,
    { mode: 0o600 },
  )
function count(sql: string): number {
  const db = new Sqlite(join(home, 'data/svc.db'), { readonly: true })
  try {
    return Number(db.prepare(sql).pluck().get())
  } finally {
    db.close()
  }
}
const inDatabase = () => count('SELECT count(*) FROM files_stored')
const inBucket = () => count('SELECT count(*) FROM files_stored WHERE object_key IS NOT NULL')
const inFolder = async () => (await readdir(workspace(), { recursive: true }).catch(() => [])).length

/** Begins a copy and kills it when `progress` says that it is under way. Whether it was killed before its end. */
async function killCopy(target: string, progress: () => number | Promise<number>, at: number): Promise<boolean> {
  const { file } = await builtCommand()
  const child = spawn(process.execPath, [file, 'files', 'copy', target, '--home', home], {
    stdio: 'ignore',
    env: { PATH: process.env['PATH'], HOME: home, ...compiledCode },
  })
  const ended = once(child, 'exit')
  while (child.exitCode === null && (await progress()) < at) await nextTurn()
  child.kill('SIGKILL')
  await ended
  return child.signalCode === 'SIGKILL'
}
async function copy(target: string): Promise<{ readonly files: number; readonly same: number }> {
  const { code, stdout, stderr } = await runHere(['files', 'copy', target, '--json', '--home', home])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

it('a copy that is killed is completed by the next one, to the database, the bucket and back to the folder', async () => {
  expect(await killCopy('database', inDatabase, FILES / 3)).toBe(true)
  const some = inDatabase()
  expect(some).toBeLessThan(FILES)
  const { files, same } = await copy('database')
  expect(same).toBeGreaterThanOrEqual(FILES / 3)
  expect(files + same).toBe(inDatabase())
  const all = inDatabase()

  await mountAt('database')
  expect(await killCopy('s3', inBucket, FILES / 3)).toBe(true)
  expect(inBucket()).toBeLessThan(FILES)
  expect((await copy('s3')).files).toBeLessThan(FILES)
  expect(inBucket()).toBeGreaterThanOrEqual(FILES)

  await mountAt('s3')
  await rm(workspace(), { recursive: true })
  expect(await killCopy('folder', inFolder, FILES / 3)).toBe(true)
  const back = await copy('folder')
  expect(back.files + back.same).toBe(all)
  for (let index = 0; index < FILES; index++)
    expect(await readFile(join(workspace(), `d${index % 10}`, `f${index}.txt`), 'utf8')).toBe(contentOf(index))

  await mountAt('folder')
  await using host = await startHost({ home, listen: false, plugins: ['audit', 'usage', 'agents', 'cluster', 'files'] })
  expect((await host.json('GET', `/api/agents/${agent}/files/first.txt`)).body.content).toBe('first')
})
