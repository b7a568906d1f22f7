import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { unpack } from './archives.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

const plugins = [
  'audit',
  'agents',
  'kv',
  'files',
  'backups',
  'providers',
  'providers/builtin',
  'providers/openai-compatible',
  'sessions',
  'system',
]
const CANARY = 'sk-canary-0123456789abcdefghijklmnop'
let home: string
let host: TestHost
const start = async (): Promise<TestHost> => await startHost({ plugins, home })
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-backups-'))
  host = await start()
})
afterEach(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

async function spawn(name: string): Promise<string> {
  const { status, body } = await host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"\n` })
  expect(status).toBe(201)
  return body.agent_id
}
const put = (agent: string, key: string, value: unknown): Promise<{ status: number }> =>
  host.json('PUT', `/api/memory/agents/${agent}/kv/${key}`, { value })
const values = async (agent: string): Promise<unknown> =>
  (await host.json('GET', `/api/memory/agents/${agent}/kv`)).body
/** What the restart that was asked for does. */
async function again(): Promise<void> {
  expect(await host.app.closed).toMatchObject({ kind: 'restart' })
  await host.stop()
  host = await start()
  await host.app.greeted()
}
/** All that can be read over the API, as text. */
async function everything(agents: readonly string[]): Promise<string> {
  const listed = await host.json('GET', '/api/agents')
  const parts = [{ body: listed.body.filter(({ name }: { name: string }) => name !== 'writer') as unknown }]
  for (const agent of agents)
    parts.push(
      await host.json('GET', `/api/agents/${agent}`),
      await host.json('GET', `/api/memory/agents/${agent}/kv`),
      await host.json('GET', `/api/agents/${agent}/files`),
      await host.json('GET', `/api/agents/${agent}/sessions`),
    )
  return JSON.stringify(parts.map(({ body }) => body))
}

describe('a backup', () => {
  it('is made without a body, for nobody else to read', async () => {
    const { status, body } = await host.json('POST', '/api/backup')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      filename: expect.stringMatching(/^svc_backup_\d{8}T\d{9}Z\.zip$/),
      size_bytes: expect.any(Number),
      components: expect.arrayContaining(['data', 'config', 'audit_anchor']),
    })
    const { mode, size } = statSync(join(home, 'backups', body.filename))
    expect([mode & 0o777, size]).toEqual([0o600, body.size_bytes])
    expect(readdirSync(join(home, 'backups'))).toEqual([body.filename])
  })

  it('is listed as it was made, and deleted once', async () => {
    const { body } = await host.json('POST', '/api/backup')
    const { filename, size_bytes, components, created_at } = body
    expect((await host.json('GET', '/api/backups')).body).toMatchObject({
      total: 1,
      backups: [{ filename, size_bytes, components, created_at }],
    })
    const removed = await host.json('DELETE', `/api/backups/${filename}`)
    expect([removed.status, removed.body]).toEqual([200, { status: 'deleted', filename }])
    expect((await host.json('GET', '/api/backups')).body).toEqual({ backups: [], total: 0 })
    expect((await host.json('DELETE', `/api/backups/${filename}`)).status).toBe(404)
  })

  it('that is made and deleted is in the audit log', async () => {
    const { body } = await host.json('POST', '/api/backup')
    await host.json('DELETE', `/api/backups/${body.filename}`)
    const { body: audit } = await host.json('GET', '/api/audit/recent')
    expect(audit.entries.map((entry: { event_type: string }) => entry.event_type)).toEqual(
      expect.arrayContaining(['backup_created', 'backup_deleted']),
    )
  })

  it.each(['..%2Fvault.key', '%2e%2e%2fsvc.zip', 'a%2Fb.zip', 'x.tar.gz', 'svc.zip%00', '.hidden.zip'])(
    'a name such as %s is refused',
    async (name) => {
      const answer = await host.json('DELETE', `/api/backups/${name}`)
      expect(answer.status).toBe(400)
      expect((await host.json('POST', '/api/restore', { filename: decodeURIComponent(name) })).status).toBe(400)
    },
  )

  it('Backup contains secrets: it holds none in plain, and not the key they are sealed with', async () => {
    expect((await host.json('POST', '/api/providers/openai/key', { api_key: CANARY })).status).toBe(200)
    const { body } = await host.json('POST', '/api/backup')
    const key = readFileSync(join(home, 'vault.key'), 'utf8').trim()
    const contents = await unpack(join(home, 'backups', body.filename))
    for (const [name, bytes] of contents) {
      for (const secret of [CANARY, key, Buffer.from(key, 'hex')]) expect(bytes.includes(secret), name).toBe(false)
    }
    expect([...contents.keys()]).toEqual(
      expect.arrayContaining([
        'backup.json',
        'config.json',
        'data/svc.db',
        'home/audit.anchor',
        'manifest.hmac',
        'manifest.json',
      ]),
    )
  })

  it('leaves links out and says so', async () => {
    const agent = await spawn('linker')
    const folder = join(home, 'data', 'workspaces', agent)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'note.txt'), 'kept')
    symlinkSync(join(home, 'vault.key'), join(folder, 'stolen.txt'))
    const { body } = await host.json('POST', '/api/backup')
    expect(body.skipped).toEqual([`workspaces/${agent}/stolen.txt`])
    expect(body.components).toContain('workspaces')
  })

  it('beyond the number that is kept is refused', async () => {
    await host.stop()
    host = await startHost({ plugins, home, config: { plugins: { backups: { max_backups: 1 } } } })
    expect((await host.json('POST', '/api/backup')).status).toBe(200)
    const second = await host.json('POST', '/api/backup')
    expect(second).toMatchObject({ status: 409, body: { error: { message: expect.stringMatching(/max_backups/) } } })
  })
})

describe('a restore', () => {
  it('brings back what was there, to the last byte, while others write two hundred times a second', async () => {
    const agents = await Promise.all(['one', 'two', 'three', 'four', 'five', 'six'].map((name) => spawn(name)))
    for (const agent of agents)
      for (const key of ['a', 'b', 'c', 'd']) await put(agent, key, { agent, key, text: 'ü'.repeat(50) })
    await host.fetch(`/api/agents/${agents[0]}/files/USER.md`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ content: 'who I am' }),
    })
    const before = await everything(agents)
    const writer = await spawn('writer')
    const running = { on: true, acknowledged: 0 }
    const writing = (async () => {
      for (let n = 0; running.on; n++) {
        const answers = await Promise.allSettled([0, 1, 2, 3].map((k) => put(writer, `k${k}`, n)))
        running.acknowledged += answers.filter(
          (answer) => answer.status === 'fulfilled' && answer.value.status === 200,
        ).length
        if (answers.some((answer) => answer.status === 'rejected')) return
        // Four values every 20 ms. As fast as it goes, it would take all the time of the backup on a busy machine.
        await delay(20)
      }
    })()
    const made = await host.json('POST', '/api/backup')
    expect(made.status).toBe(200)
    await put(agents[1] ?? '', 'a', 'changed after the backup')
    await host.json('DELETE', `/api/agents/${agents[2]}`)
    const restored = await host.json('POST', '/api/restore', { filename: made.body.filename })
    expect(restored).toMatchObject({
      status: 200,
      body: {
        status: 'restarting',
        restored_files: expect.any(Number),
        errors: [],
        manifest: { created_at: made.body.created_at },
        previous: expect.stringMatching(/^svc_before-restore_/),
      },
    })
    await again()
    running.on = false
    await writing
    expect(running.acknowledged).toBeGreaterThan(20)
    const after = await everything(agents)
    expect(after.length).toBeGreaterThan(1_000)
    expect(after).toBe(before)
    // A point in time: the four keys of one round were written together, so no two can be further apart than a round.
    const { kv_pairs: pairs } = (await values(writer)) as { kv_pairs: { value: number }[] }
    const rounds = pairs.map(({ value }) => value)
    if (rounds.length > 0) expect(Math.max(...rounds) - Math.min(...rounds)).toBeLessThanOrEqual(1)
  })

  it('is in the audit log, whose chain goes on, and keeps both backups', async () => {
    const { filename } = (await host.json('POST', '/api/backup')).body
    const { previous } = (await host.json('POST', '/api/restore', { filename })).body
    await again()
    expect((await host.json('GET', '/api/audit/verify')).body).toMatchObject({ status: 'valid' })
    const { body: audit } = await host.json('GET', '/api/audit/recent?event_type=backup_restored')
    expect(audit.entries.at(-1).details).toContain(filename)
    const { body: list } = await host.json('GET', '/api/backups')
    const names = list.backups.map((each: { filename: string }) => each.filename)
    expect(names).toEqual(expect.arrayContaining([filename, previous]))
  })

  it('can be taken back with the backup that was made before it', async () => {
    const agent = await spawn('one')
    await put(agent, 'k', 'old')
    const made = await host.json('POST', '/api/backup')
    await put(agent, 'k', 'new')
    const first = await host.json('POST', '/api/restore', { filename: made.body.filename })
    await again()
    expect(JSON.stringify(await values(agent))).toContain('old')
    expect((await host.json('POST', '/api/restore', { filename: first.body.previous })).status).toBe(200)
    await again()
    expect(JSON.stringify(await values(agent))).toContain('new')
  })

  it('Hostile restore: one of an unknown, a damaged or a foreign backup changes nothing', async () => {
    expect((await host.json('POST', '/api/restore', { filename: 'svc_backup_20200101T000000000Z.zip' })).status).toBe(
      404,
    )
    expect((await host.json('POST', '/api/restore', {})).status).toBe(400)
    const made = await host.json('POST', '/api/backup')
    const file = join(home, 'backups', made.body.filename)
    const bytes = readFileSync(file)
    bytes.writeUInt8((bytes[2_000] ?? 0) ^ 0xff, 2_000)
    writeFileSync(file, bytes)
    const refused = await host.json('POST', '/api/restore', { filename: made.body.filename })
    expect(refused).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringMatching(/^This archive is refused/) } },
    })
    for (const filename of [
      '../svc.db',
      '..',
      'a/b.zip',
      '/etc/passwd',
      'x.zip/../../vault.key',
      'svc%2f..%2fx.zip',
      'x.tar',
    ])
      expect((await host.json('POST', '/api/restore', { filename })).status).toBe(400)
    // Sound, and made by somebody who has another key: whoever can put a file into the folder takes over nothing.
    const elsewhere = await mkdtemp(join(tmpdir(), 'svc-stranger-'))
    try {
      await using stranger = await startHost({ plugins, home: elsewhere })
      const { body } = await stranger.json('POST', '/api/backup')
      await copyFile(
        join(elsewhere, 'backups', body.filename),
        join(home, 'backups', 'svc_backup_20300101T000000000Z.zip'),
      )
      const foreign = await host.json('POST', '/api/restore', { filename: 'svc_backup_20300101T000000000Z.zip' })
      expect(foreign).toMatchObject({
        status: 400,
        body: { error: { message: expect.stringMatching(/made by another installation/) } },
      })
    } finally {
      await rm(elsewhere, { recursive: true, force: true })
    }
    expect(readdirSync(home).filter((name) => name.includes('restore'))).toEqual([])
  })

  describe('on another machine', () => {
    const passphrase = 'correct horse battery'
    let elsewhere: string
    let agent: string
    let filename: string
    let vaultKey: string
    /** A backup that was sealed with a passphrase, and a daemon with another key of the vault that it was copied to. */
    beforeEach(async () => {
      expect((await host.json('POST', '/api/providers/openai/key', { api_key: CANARY })).status).toBe(200)
      agent = await spawn('mover')
      const { body } = await host.json('POST', '/api/backup', { passphrase })
      expect(body.components).toContain('vault_key')
      filename = body.filename
      elsewhere = await mkdtemp(join(tmpdir(), 'svc-elsewhere-'))
      const archive = join(home, 'backups', filename)
      vaultKey = readFileSync(join(home, 'vault.key'), 'utf8')
      await host[Symbol.asyncDispose]()
      host = await startHost({ plugins, home: elsewhere })
      await host.json('POST', '/api/backup')
      await copyFile(archive, join(elsewhere, 'backups', filename))
      await rm(home, { recursive: true, force: true })
      home = elsewhere
    })

    it.each([
      ['without the passphrase it was sealed with', {}, /made by another installation/],
      ['with another passphrase', { passphrase: 'wrong horse battery' }, /passphrase/],
    ])('is refused %s', async (_what, given, message) => {
      expect(await host.json('POST', '/api/restore', { filename, ...given })).toMatchObject({
        status: 400,
        body: { error: { message: expect.stringMatching(message) } },
      })
    })

    it('brings everything with the passphrase, secrets and the key of the vault too', async () => {
      expect((await host.json('POST', '/api/restore', { filename, passphrase })).status).toBe(200)
      await again()
      expect((await host.json('GET', `/api/agents/${agent}`)).status).toBe(200)
      expect((await host.json('GET', '/api/audit/verify')).body.status).toBe('valid')
      expect(JSON.stringify((await host.json('GET', '/api/providers')).body)).toMatch(/"openai"/)
      expect(readFileSync(join(elsewhere, 'vault.key'), 'utf8')).toBe(vaultKey)
    })
  })

  it('is not sealed with a passphrase that is too short', async () => {
    expect((await host.json('POST', '/api/backup', { passphrase: 'short' })).status).toBe(400)
  })
})
