import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { completeSwap, planSwap } from '../../../core/storage/swap.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { runHere } from './here.ts'

const plugins = ['audit', 'agents', 'kv', 'backups', 'system']
let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-cli-restore-'))
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

/** What a daemon does that runs and ends in between. */
async function serving<T>(work: (host: TestHost) => Promise<T>, config: Record<string, unknown> = {}): Promise<T> {
  const host = await startHost({ plugins, home, config })
  try {
    return await work(host)
  } finally {
    await host[Symbol.asyncDispose]()
  }
}
async function spawn(host: TestHost, name: string): Promise<void> {
  expect((await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n` })).status).toBe(201)
}
const names = async (host: TestHost): Promise<string[]> =>
  (await host.json('GET', '/api/agents')).body
    .map((agent: { name: string }) => agent.name)
    .filter((name: string) => name !== 'assistant')
const database = (): string => join(home, 'data', 'svc.db')
const cli = (...args: string[]) => runHere([...args, '--home', home])

describe('svc audit verify', () => {
  it('works without a daemon, on a copy, and beside a daemon', async () => {
    await serving(async (host) => {
      await spawn(host, 'one')
      const beside = await cli('audit', 'verify', '--json')
      expect(beside.code, beside.stderr).toBe(0)
      expect(JSON.parse(beside.stdout)).toMatchObject({ status: 'valid', anchor: 'known' })
    })
    const alone = await cli('audit', 'verify')
    expect(alone).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/status +valid[\s\S]*signature checked[\s\S]*anchor +known/),
    })
    await copyFile(database(), join(home, 'copy.db'))
    expect(await cli('audit', 'verify', join(home, 'copy.db'))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/signature not checked/),
    })
    expect(JSON.parse((await cli('audit', 'verify', join(home, 'copy.db'), '--json')).stdout)).toMatchObject({
      status: 'valid',
      signatures: false,
    })
  })

  it('names the first bad entry, changes nothing and ends with 1', async () => {
    await serving(async (host) => {
      for (const name of ['one', 'two', 'three']) await spawn(host, name)
    })
    const file = new Sqlite(database())
    file.prepare("UPDATE audit_entry SET details = 'nothing' WHERE id = 3").run()
    file.close()
    const before = readFileSync(database())
    expect(await cli('audit', 'verify')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/status +invalid/),
      stderr: expect.stringMatching(/the first bad entry is 3/),
    })
    expect(await cli('audit', 'verify', database())).toMatchObject({ code: 1 })
    expect(readFileSync(database()).equals(before)).toBe(true)
  })

  it('does not take a trail for proven whose keys were removed from the database', async () => {
    await serving((host) => spawn(host, 'one'))
    const file = new Sqlite(database())
    file.prepare("DELETE FROM core_vault WHERE plugin = 'audit'").run()
    file.close()
    expect(await cli('audit', 'verify')).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/signature not checked[\s\S]*anchor +keyless/),
      stderr: expect.stringMatching(/signing key of the checkpoints is missing/),
    })
  })

  it('says what is wrong with a file that is missing or is none', async () => {
    expect(await cli('audit', 'verify')).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/there is no database/),
    })
    const foreign = new Sqlite(join(home, 'foreign.db'))
    foreign.exec('CREATE TABLE x (id INTEGER)')
    foreign.close()
    expect(await cli('audit', 'verify', join(home, 'foreign.db'))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no audit trail/),
    })
  })
})

describe('svc backup and svc restore', () => {
  it('work without a daemon, and the trail tells of it', async () => {
    await serving((host) => spawn(host, 'kept'))
    const made = await cli('backup', '--json')
    expect(made.code, made.stderr).toBe(0)
    const { filename, path } = JSON.parse(made.stdout)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    await serving((host) => spawn(host, 'later'))
    expect(await cli('restore', filename)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/the previous data is .*data\.before-restore-/),
    })
    await serving(async (host) => {
      expect(await names(host)).toEqual(['kept'])
      await host.app.greeted()
      expect((await host.json('GET', '/api/audit/verify')).body.status).toBe('valid')
      expect(
        (await host.json('GET', '/api/audit/recent?event_type=backup_restored')).body.entries.at(-1).details,
      ).toMatch(/restored: backup svc_backup_/)
    })
  })

  it('ask the running daemon', async () => {
    await serving(async (host) => {
      const made = await cli('backup', '--json')
      expect(made.code, made.stderr).toBe(0)
      expect(await cli('restore', join(home, 'backups', JSON.parse(made.stdout).filename))).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/svc stop/),
      })
      expect(await cli('restore', 'nothing.zip')).toMatchObject({ code: 4 })
      expect(await cli('restore', JSON.parse(made.stdout).filename)).toMatchObject({ code: 0 })
      expect(await host.app.closed).toMatchObject({ kind: 'restart' })
    })
  })

  it('refuse what is no backup, with what to do', async () => {
    await serving((host) => spawn(host, 'one'))
    expect(await cli('restore', 'missing.zip')).toMatchObject({ code: 4, stderr: expect.stringMatching(/backups/) })
    await copyFile(database(), join(home, 'x.tar'))
    expect(await cli('restore', join(home, 'x.tar'))).toMatchObject({ code: 2 })
    await copyFile(database(), join(home, 'x.zip'))
    expect(await cli('restore', join(home, 'x.zip'))).toMatchObject({
      code: expect.any(Number),
      stderr: expect.stringMatching(/This archive is refused/),
    })
  })
})

describe('a damaged database', () => {
  it('is refused with the exact command, kept aside, and the hourly copy takes its place', async () => {
    await serving(
      async (host) => {
        await spawn(host, 'copied')
        while (
          !existsSync(join(home, 'data', 'snapshots')) ||
          !readdirSync(join(home, 'data', 'snapshots')).some((name) => /^svc-.*\.db$/.test(name))
        )
          await host.json('GET', '/api/health')
      },
      { plugins: { backups: { snapshot_interval_secs: 1 } } },
    )
    await serving((host) => spawn(host, 'lost'))
    const handle = openSync(database(), 'r+')
    writeSync(handle, Buffer.alloc(8_192, 0xa5), 0, 8_192, 8_192)
    closeSync(handle)
    const damaged = readFileSync(database())
    const failed = await cli('start')
    expect(failed.code).toBe(1)
    const command =
      /svc (restore \S+\.db --home \S+)/.exec(failed.stderr)?.[1]?.split(' ') ?? expect.fail(failed.stderr)
    expect(readFileSync(database()).equals(damaged)).toBe(true)
    expect(await runHere(command)).toMatchObject({ code: 0 })
    const kept =
      readdirSync(join(home, 'data')).find(
        (name) => name.startsWith('svc.db.damaged-') && !/-(?:wal|shm)$/.test(name),
      ) ?? expect.fail('nothing was kept')
    expect(readFileSync(join(home, 'data', kept)).equals(damaged)).toBe(true)
    await serving(async (host) => {
      expect(await names(host)).toContain('copied')
      await host.app.greeted()
      expect((await host.json('GET', '/api/audit/verify')).body.status).toBe('valid')
    })
  })
})

describe('a swap', () => {
  it('killed after any of its steps is gone on with, and is never half', async () => {
    for (const killedAfter of [0, 1, 2, 3]) {
      const dir = await mkdtemp(join(tmpdir(), 'svc-swap-'))
      try {
        const at = (name: string): string => join(dir, name)
        for (const [name, text] of [
          ['data', 'old'],
          ['staged', 'new'],
        ] as const) {
          mkdirSync(at(name))
          writeFileSync(join(at(name), 'x'), text)
        }
        writeFileSync(at('anchor'), 'old')
        writeFileSync(at('anchor.new'), 'new')
        const plan = {
          id: 'x',
          planned_at: 'now',
          facts: {},
          moves: [
            { from: at('staged'), to: at('data'), keep: at('data.old') },
            { from: at('anchor.new'), to: at('anchor'), keep: at('anchor.old') },
          ],
        }
        planSwap(dir, plan)
        const steps = [
          ['data', 'data.old'],
          ['staged', 'data'],
          ['anchor', 'anchor.old'],
        ] as const
        for (const [from, to] of steps.slice(0, killedAfter)) renameSync(at(from), at(to))
        expect(completeSwap(dir)).toEqual(plan)
        expect(completeSwap(dir)).toBeUndefined()
        expect([
          readFileSync(join(at('data'), 'x'), 'utf8'),
          readFileSync(at('anchor'), 'utf8'),
          readFileSync(join(at('data.old'), 'x'), 'utf8'),
          readFileSync(at('anchor.old'), 'utf8'),
        ]).toEqual(['new', 'new', 'old', 'old'])
      } finally {
        await rm(dir, { recursive: true, force: true })
      }
    }
  })
})
