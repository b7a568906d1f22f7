import { once } from 'node:events'
import { hash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { complete, KEY, listed, operator, pair, requestCode, startPairing } from './devices.ts'
import type { Json } from '../../support/json.ts'

let host: TestHost
beforeAll(async () => {
  host = await startPairing()
})
afterAll(() => host[Symbol.asyncDispose]())
beforeEach(async () => {
  sql(host, 'DELETE FROM pairing_code')
  for (const { device_id: id } of await listed(host))
    await host.json('DELETE', `/api/pairing/devices/${id}`, undefined, operator)
})
/** As if somebody had waited, or looked into the file. */
function sql(at: TestHost, text: string): Json[] {
  const db = new Sqlite(join(at.home, 'data', 'svc.db'))
  try {
    const statement = db.prepare(text)
    return statement.reader ? statement.all() : (statement.run(), [])
  } finally {
    db.close()
  }
}
const trail = async (at: TestHost): Promise<string[]> =>
  (await at.json('GET', '/api/audit/recent?limit=500', undefined, operator)).body.entries.map(
    ({ event_type: event, details }: Json) => `${event}: ${details}`,
  )

describe('pairing that nobody enabled', () => {
  it('answers 404 and says how, with the key only', async () => {
    await using off = await startHost({ config: { api_key: KEY }, plugins: ['audit', 'pairing'] })
    for (const [method, path, body] of [
      ['POST', '/api/pairing/request'],
      ['POST', '/api/pairing/complete', { pairing_code: 'K7M-2QX' }],
      ['POST', '/api/pairing/notify', { message: 'hi' }],
      ['GET', '/api/pairing/devices'],
      ['DELETE', '/api/pairing/devices/0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d'],
    ] as const) {
      expect((await off.json(method, path, body)).status).toBe(401)
      const { status, body: answer } = await off.json(method, path, body, operator)
      expect([status, answer.error.message]).toEqual([404, expect.stringContaining('Pairing not enabled')])
    }
  })

  it('takes the keys of paired devices back, and gives them back when it is enabled again', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-pairing-'))
    try {
      const first = await startPairing({}, { home, plugins: ['audit', 'pairing', 'system'] })
      const { bearer } = await pair(first)
      await first.stop()
      for (const [enabled, status] of [
        [false, 401],
        [true, 200],
      ] as const) {
        const next = await startPairing({ enabled }, { home, plugins: ['audit', 'pairing', 'system'] })
        expect((await next.json('GET', '/api/status', undefined, bearer)).status).toBe(status)
        await next.stop()
      }
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })
})

describe('a code', () => {
  it('is three and three characters nobody mistakes, for five minutes', async () => {
    const before = Date.now()
    const { status, body } = await host.json('POST', '/api/pairing/request', undefined, operator)
    expect(status).toBe(200)
    expect(body).toEqual({
      pairing_code: expect.stringMatching(/^[2-9A-HJ-NP-Z]{3}-[2-9A-HJ-NP-Z]{3}$/),
      token: body.pairing_code,
      qr_uri: `svc://pair?token=${body.pairing_code}`,
      expires_at: expect.any(String),
    })
    expect(Date.parse(body.expires_at)).toBeGreaterThanOrEqual(before + 300_000)
    expect(Date.parse(body.expires_at)).toBeLessThanOrEqual(Date.now() + 300_000)
  })

  it('carries the address of the daemon in its link where one is configured', async () => {
    await using reachable = await startPairing(
      { public_base_url: 'https://svc.example.org' },
      { plugins: ['audit', 'pairing'] },
    )
    const { body } = await reachable.json('POST', '/api/pairing/request', undefined, operator)
    const payload = Buffer.from(new URL(body.qr_uri).searchParams.get('payload') ?? '', 'base64url').toString()
    expect(JSON.parse(payload)).toEqual({
      v: 1,
      base_url: 'https://svc.example.org',
      token: body.pairing_code,
      expires_at: body.expires_at,
    })
  })

  it.each(['pairing_code', 'code', 'token'])(
    'is taken as %s, however it is typed, and without a key',
    async (field) => {
      const code = await requestCode(host)
      const { status, body } = await complete(host, {
        [field]: ` ${code.toLowerCase().replace('-', ' ')}`,
        display_name: '  Ada\u2019s phone ',
        platform: 'ios',
      })
      expect(status).toBe(200)
      expect(body).toEqual({
        device_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        display_name: 'Ada\u2019s phone',
        platform: 'ios',
        paired_at: expect.any(String),
        api_key: expect.stringMatching(/^svc_device_[\w-]{43}$/),
      })
    },
  )

  it('is used once, also by ten at the same time', async () => {
    const code = await requestCode(host)
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => complete(host, { pairing_code: code, display_name: `phone ${index}` })),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array.from({ length: 9 }, () => 400)])
    expect(await listed(host)).toHaveLength(1)
    expect((await complete(host, { pairing_code: code })).status).toBe(400)
  })

  it('is the same to whoever sends it: wrong, used and expired ones are not told apart', async () => {
    const [used, old] = [await requestCode(host), await requestCode(host)]
    await complete(host, { pairing_code: used })
    sql(host, `UPDATE pairing_code SET expires_at = '2000-01-01T00:00:00.000Z'`)
    const answers = await Promise.all(
      [used, old, 'AAA-AAA', 'nonsense', '---'].map((code) => complete(host, { pairing_code: code })),
    )
    expect(answers.map(({ status, body }) => [status, body.error.message])).toEqual(
      Array.from({ length: 5 }, () => [400, 'This pairing code is wrong, was used or has expired; request a new one']),
    )
    expect(await listed(host)).toHaveLength(1)
  })

  it('is one of five at most; those that expired make room', async () => {
    const codes = await Promise.all(
      Array.from({ length: 8 }, () => host.json('POST', '/api/pairing/request', undefined, operator)),
    )
    expect(codes.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 200, 400, 400, 400])
    expect(codes.find(({ status }) => status === 400)?.body.error.message).toContain('5 pairing codes wait already')
    sql(host, `UPDATE pairing_code SET expires_at = '2000-01-01T00:00:00.000Z'`)
    expect((await host.json('POST', '/api/pairing/request', undefined, operator)).status).toBe(200)
    expect(sql(host, 'SELECT * FROM pairing_code')).toHaveLength(1)
  })

  it('leaves room for no more devices than configured, also when two codes are used at the same time', async () => {
    await using small = await startPairing({ max_devices: 1 }, { plugins: ['audit', 'pairing'] })
    const codes = [await requestCode(small), await requestCode(small)]
    const answers = await Promise.all(codes.map((code) => complete(small, { pairing_code: code })))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect(await small.json('POST', '/api/pairing/request', undefined, operator)).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining('remove one') as string } },
    })
    await small.json('DELETE', `/api/pairing/devices/${(await listed(small))[0].device_id}`, undefined, operator)
    // The one that was turned away was not used up.
    const [, left] = answers[0]?.status === 200 ? codes : codes.toReversed()
    expect((await complete(small, { pairing_code: left })).status).toBe(200)
  })

  it('that waits is still good after a restart, and so are the devices', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-pairing-'))
    try {
      const before = await startPairing({}, { home, plugins: ['audit', 'pairing', 'system'] })
      const { id, bearer } = await pair(before, 'kept')
      const code = await requestCode(before)
      await before.json('GET', '/api/status', undefined, bearer)
      const [{ last_seen: seen }] = await listed(before)
      await before.stop()
      const after = await startPairing({}, { home, plugins: ['audit', 'pairing', 'system'] })
      expect(await listed(after)).toMatchObject([{ device_id: id, display_name: 'kept', last_seen: seen }])
      expect((await after.json('GET', '/api/status', undefined, bearer)).status).toBe(200)
      expect((await complete(after, { pairing_code: code })).status).toBe(200)
      await after.stop()
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })

  it.each([
    [{}, 'pairing_code'],
    [{ pairing_code: '' }, 'pairing_code'],
    [{ pairing_code: 'x'.repeat(129) }, 'pairing_code'],
    [{ pairing_code: 5 }, 'pairing_code'],
    [{ pairing_code: ['K7M-2QX'] }, 'pairing_code'],
    [{ pairing_code: 'K7M-2QX', display_name: ' ' }, 'display_name'],
    [{ pairing_code: 'K7M-2QX', display_name: 'a\u001b[2Jb' }, 'display_name'],
    [{ pairing_code: 'K7M-2QX', display_name: 'x'.repeat(129) }, 'display_name'],
    [{ pairing_code: 'K7M-2QX', display_name: '\ud800' }, 'display_name'],
    [{ pairing_code: 'K7M-2QX', platform: 'x'.repeat(65) }, 'platform'],
    [{ pairing_code: 'K7M-2QX', push_token: {} }, 'push_token'],
  ])('with %j is refused, and the field is named', async (body, field) => {
    const answer = await complete(host, body)
    expect(answer.status).toBe(400)
    expect(JSON.stringify(answer.body)).toContain(field)
  })
})

describe('a paired device', () => {
  it('does with its key what the operator does with his: the API, the chat, OpenAI\u2019s API', async () => {
    const { bearer } = await pair(host)
    const { status, body: agents } = await host.json('GET', '/api/agents', undefined, bearer)
    expect([status, agents.length]).toEqual([200, 1])
    const client = new OpenAI({ baseURL: `${host.url}/v1`, apiKey: bearer.authorization.slice('Bearer '.length) })
    const answer = await client.chat.completions.create({
      model: agents[0].name,
      messages: [{ role: 'user', content: 'hello' }],
    })
    expect(answer.choices[0]?.message.content).toBeTruthy()
    expect((await host.json('POST', `/api/agents/${agents[0].id}/message`, { message: 'hello' }, bearer)).status).toBe(
      200,
    )
  })

  it('loses its key, and at once its sockets and streams, even silent ones, and nobody else does', async () => {
    const silent = 3_600_000
    await using quiet = await startPairing(
      {},
      {
        config: {
          http: { sse_keep_alive_ms: silent },
          plugins: { chat: { agents_updated_ms: silent, agents_updated_first_ms: silent } },
        },
      },
    )
    const [lost, kept] = [await pair(quiet, 'lost'), await pair(quiet, 'kept')]
    const [agent] = (await quiet.json('GET', '/api/agents', undefined, operator)).body
    const sockets = await Promise.all(
      [lost, kept].map(async ({ bearer }) => {
        const { body } = await quiet.json('POST', '/api/auth/ws-ticket', undefined, bearer)
        const socket = new WebSocket(`${quiet.url.replace('http', 'ws')}/api/agents/${agent.id}/ws`, [
          'svc',
          body.protocol,
        ])
        await once(socket, 'message')
        return socket
      }),
    )
    const feed = await quiet.fetch('/api/logs/stream?level=error', { headers: lost.bearer })
    const reading = feed.text().then(
      () => 'ended',
      () => 'cut',
    )
    const closed = once(sockets[0] as WebSocket, 'close') as Promise<[CloseEvent]>
    expect(await quiet.json('DELETE', `/api/pairing/devices/${lost.id}`, undefined, operator)).toMatchObject({
      status: 200,
      body: { ok: true, device_id: lost.id, effects: [], effects_total: 0 },
    })
    expect((await closed)[0].code).toBe(1008)
    expect(await reading).toMatch(/ended|cut/)
    expect((await quiet.json('GET', '/api/agents', undefined, lost.bearer)).status).toBe(401)
    expect((await quiet.json('GET', '/api/agents', undefined, kept.bearer)).status).toBe(200)
    expect(sockets[1]?.readyState).toBe(WebSocket.OPEN)
    sockets[1]?.close()
  })

  it('is removed once, however many ask for it, and an unknown one is 404', async () => {
    const { id } = await pair(host)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => host.json('DELETE', `/api/pairing/devices/${id}`, undefined, operator)),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 404, 404, 404, 404])
    expect((await trail(host)).filter((line) => line.includes(`${id} "phone" removed`))).toHaveLength(1)
    expect((await host.json('DELETE', '/api/pairing/devices/nonsense', undefined, operator)).status).toBe(400)
  })

  it('lets nobody in and throws nobody out, but may leave', async () => {
    const [one, two] = [await pair(host, 'one'), await pair(host, 'two')]
    expect(await host.json('POST', '/api/pairing/request', undefined, one.bearer)).toMatchObject({
      status: 403,
      body: { error: { code: 'forbidden', message: 'A paired device cannot do this: use the API key' } },
    })
    expect((await host.json('DELETE', `/api/pairing/devices/${two.id}`, undefined, one.bearer)).status).toBe(403)
    expect((await host.json('GET', '/api/pairing/devices', undefined, one.bearer)).body.total).toBe(2)
    expect((await host.json('DELETE', `/api/pairing/devices/${one.id}`, undefined, one.bearer)).status).toBe(200)
    expect((await host.json('GET', '/api/agents', undefined, one.bearer)).status).toBe(401)
    expect(await listed(host)).toMatchObject([{ device_id: two.id }])
  })

  it('is named where it answers what an agent asks, over a socket too', async () => {
    const { bearer } = await pair(host, 'Ada')
    const [agent] = (await host.json('GET', '/api/agents', undefined, operator)).body
    const asked = async (): Promise<string> =>
      (
        await host.json(
          'POST',
          '/api/approvals',
          { agent_id: agent.id, action: 'shell_exec', payload: { command: 'ls' } },
          operator,
        )
      ).body.id
    const answered = async (id: string) => (await host.json('GET', `/api/approvals/${id}`, undefined, operator)).body
    const first = await asked()
    expect((await host.json('POST', `/api/approvals/${first}/approve`, undefined, bearer)).status).toBe(200)
    expect(await answered(first)).toMatchObject({ status: 'approved', decided_by: 'device "Ada"' })
    const { body } = await host.json('POST', '/api/auth/ws-ticket', undefined, bearer)
    const socket = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${agent.id}/ws`, ['svc', body.protocol])
    await once(socket, 'open')
    const second = await asked()
    socket.send(`/reject ${second}`)
    await expect.poll(() => answered(second)).toMatchObject({ status: 'rejected', decided_by: 'device "Ada"' })
    socket.close()
  })

  it('is seen at every request, which writes nothing', async () => {
    const { bearer } = await pair(host)
    const [{ paired_at: paired }] = await listed(host)
    await host.json('GET', '/api/agents', undefined, bearer)
    const [{ last_seen: seen }] = await listed(host)
    expect(Date.parse(seen)).toBeGreaterThan(Date.parse(paired))
    expect(sql(host, 'SELECT last_seen FROM pairing_device')).toEqual([{ last_seen: paired }])
    await host.app.host.reload('pairing')
    expect(sql(host, 'SELECT last_seen FROM pairing_device')).toEqual([{ last_seen: seen }])
    expect((await host.json('GET', '/api/agents', undefined, bearer)).status).toBe(200)
  })
})

describe('a row that no daemon wrote', () => {
  const plugins = ['audit', 'pairing', 'system']
  const status = async (at: TestHost, key: string): Promise<number> =>
    (await at.json('GET', '/api/status', undefined, { authorization: `Bearer ${key}` })).status
  const forge = (at: TestHost, key: string): void =>
    void sql(
      at,
      `INSERT INTO pairing_device (id, code_id, digest, display_name, platform, paired_at, last_seen)
        VALUES ('00000000-0000-4000-8000-000000000001', '${key}', '${hash('sha256', key)}', 'own', 'x', '2026', '2026')`,
    )

  it('lets nobody in, is named and can be removed; neither does another key in the row of a device', async () => {
    await using at = await startPairing({}, { plugins })
    const { id, bearer } = await pair(at)
    forge(at, 'forged')
    await at.app.host.reload('pairing')
    expect(await status(at, 'forged')).toBe(401)
    expect((await listed(at)).map(({ display_name: name }) => name)).toEqual(['phone'])
    const forged = '/api/pairing/devices/00000000-0000-4000-8000-000000000001'
    await eventually(() => expect(at.log.filter((line) => line.includes(`DELETE ${forged}`))).toHaveLength(1))
    expect((await at.json('DELETE', forged, undefined, operator)).status).toBe(200)
    expect(sql(at, 'SELECT id FROM pairing_device')).toEqual([{ id }])
    sql(at, `UPDATE pairing_device SET digest = '${hash('sha256', 'forged')}'`)
    await at.app.host.reload('pairing')
    expect([await status(at, 'forged'), await status(at, bearer.authorization.slice('Bearer '.length))]).toEqual([
      401, 401,
    ])
  })

  it('lets nobody in when it is put back after the device was removed', async () => {
    await using at = await startPairing({}, { plugins })
    const { id, bearer } = await pair(at)
    const key = bearer.authorization.slice('Bearer '.length)
    sql(at, 'CREATE TABLE saved AS SELECT * FROM pairing_device')
    expect((await at.json('DELETE', `/api/pairing/devices/${id}`, undefined, operator)).status).toBe(200)
    sql(at, 'INSERT INTO pairing_device SELECT * FROM saved')
    await at.app.host.reload('pairing')
    expect([await status(at, key), (await listed(at)).length]).toEqual([401, 0])
    await eventually(() => expect(at.log.join('\n')).toContain('was put back after the device was removed'))
  })

  it('is taken over from the version before, once', async () => {
    await using at = await startPairing({}, { plugins })
    const { bearer } = await pair(at)
    const paired = bearer.authorization.slice('Bearer '.length)
    const forget = (): void =>
      void sql(at, "DELETE FROM core_vault WHERE plugin = 'pairing' AND name = 'older-devices'")
    // As the version before left it.
    forget()
    await rm(join(at.home, 'paired-devices.json'))
    sql(at, 'UPDATE pairing_device SET proof = NULL')
    await at.app.host.reload('pairing')
    expect(await status(at, paired)).toBe(200)
    forge(at, 'later')
    forget()
    await at.app.host.reload('pairing')
    expect([await status(at, paired), await status(at, 'later')]).toEqual([200, 401])
  })
})

describe('what is kept of it', () => {
  it('neither codes nor keys are on disk, in the log or in the trail', async () => {
    const code = await requestCode(host)
    const { body } = await complete(host, { pairing_code: await requestCode(host), display_name: 'phone' })
    await host.json('GET', '/api/agents', undefined, { authorization: `Bearer ${body.api_key}` })
    sql(host, 'PRAGMA wal_checkpoint(TRUNCATE)')
    const file = (await readFile(join(host.home, 'data', 'svc.db'))).toString('latin1')
    const kept = [file, host.log.join('\n'), (await trail(host)).join('\n')]
    for (const secret of [code, code.replace('-', ''), body.api_key])
      for (const place of kept) expect(place.includes(secret)).toBe(false)
  })

  it('the trail tells who asked, who was paired, refused and removed', async () => {
    const { id } = await pair(host, 'Ada')
    await complete(host, { pairing_code: 'AAA-AAA' })
    await host.json('DELETE', `/api/pairing/devices/${id}`, undefined, operator)
    const entries = await trail(host)
    const last = (word: string) => entries.findLast((line) => line.includes(word))
    expect(last(' removed ')).toBe(`pairing_changed: device ${id} "Ada" removed by operator at 127.0.0.1`)
    expect(last('auth_attempt')).toContain('POST /api/pairing/complete')
    expect(last(' paired from ')).toBe(`pairing_changed: device ${id} "Ada" (android) paired from 127.0.0.1`)
    expect(last(' requested by ')).toMatch(
      /^pairing_changed: a pairing code requested by operator at 127\.0\.0\.1, which can be used until 2\d{3}-/,
    )
  })
})
