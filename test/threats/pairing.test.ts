import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { makeCode } from '../../core/auth/short-code.ts'
import { complete, KEY, listed, operator, pair, requestCode, startPairing } from '../plugins/pairing/devices.ts'

const plugins = ['audit', 'pairing', 'system', 'settings'] as const
const few = { rate_limit: { failed_auth_per_minute: 10 } }
const wrong = (n: number): string => `AA${'23456789ABCDEFGHJKLMNPQRSTUVWXYZ'[n % 32]}-${'ABCDEFGHJK'[n % 10]}ZZ`

describe('threats: Device pairing', () => {
  it('Device pairing: guesses count as wrong keys do, and after ten of them not even the right code is looked at', async () => {
    await using host = await startPairing({}, { plugins, config: few })
    const code = await requestCode(host)
    // All at once, so that none can slip in before the others are counted.
    const guesses = await Promise.all(Array.from({ length: 30 }, (_, n) => complete(host, { pairing_code: wrong(n) })))
    expect(guesses.map(({ status }) => status).toSorted()).toEqual([
      ...Array.from({ length: 10 }, () => 400),
      ...Array.from({ length: 20 }, () => 429),
    ])
    expect((await complete(host, { pairing_code: code })).status).toBe(429)
    expect((await host.json('GET', '/api/status', undefined, operator)).status).toBe(429)
  })

  it('Device pairing: guesses from many addresses make the codes that wait void', async () => {
    await using host = await startPairing(
      { max_attempts: 20 },
      { plugins, config: { ...few, http: { trusted_proxies: ['127.0.0.1'] } } },
    )
    const code = await requestCode(host)
    const from = (address: string, guess: string) =>
      host.json('POST', '/api/pairing/complete', { pairing_code: guess }, { 'x-forwarded-for': address })
    for (let n = 0; n < 20; n++) expect((await from(`203.0.113.${n}`, wrong(n))).status).toBe(400)
    expect((await from('198.51.100.1', code)).status).toBe(400)
    expect(await listed(host)).toEqual([])
    // The next one is not spent yet.
    expect((await from('198.51.100.1', await requestCode(host))).status).toBe(200)
  })

  it('Device pairing: there are more codes than can be guessed in that time', () => {
    const codes = new Set(Array.from({ length: 5_000 }, () => makeCode()))
    expect(codes.size).toBeGreaterThan(4_995)
    for (let place = 0; place < 6; place++)
      expect(new Set([...codes].map((code) => code.replace('-', '')[place])).size).toBe(32)
  })

  it('Device pairing: a code seen over the shoulder and used at the same time makes one device, not two', async () => {
    await using host = await startPairing({}, { plugins })
    const code = await requestCode(host)
    const answers = await Promise.all(
      ['owner', 'thief', 'thief', 'owner'].map((name) => complete(host, { pairing_code: code, display_name: name })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await listed(host)).toHaveLength(1)
  })

  it('Device pairing: whoever reads the database can use neither a code nor a key', async () => {
    await using host = await startPairing({}, { plugins })
    const { bearer } = await pair(host)
    const code = await requestCode(host)
    const db = new Sqlite(join(host.home, 'data', 'svc.db'), { readonly: true })
    const [codes, devices] = [
      db.prepare('SELECT * FROM pairing_code').all(),
      db.prepare('SELECT * FROM pairing_device').all(),
    ] as { digest: string }[][]
    db.close()
    const hashes = new Set(
      [code, code.replace('-', '')].flatMap((text) =>
        ['sha256', 'sha1', 'md5', 'sha512'].map((kind) => createHash(kind).update(text).digest('hex')),
      ),
    )
    expect(codes?.map(({ digest }) => hashes.has(digest))).toEqual([false])
    expect(JSON.stringify(devices)).not.toContain(bearer.authorization.slice(7))
    // What is stored is no credential itself.
    for (const { digest } of [...(codes ?? []), ...(devices ?? [])]) {
      expect((await host.json('GET', '/api/status', undefined, { authorization: `Bearer ${digest}` })).status).toBe(401)
      expect((await complete(host, { pairing_code: digest })).status).toBe(400)
    }
  })

  it('Device pairing: a foreign page can neither ask for a code nor use one', async () => {
    await using host = await startPairing({}, { plugins })
    const code = await requestCode(host)
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
      expect((await host.json('POST', '/api/pairing/complete', { pairing_code: code }, headers)).status).toBe(403)
      expect((await host.json('POST', '/api/pairing/request', undefined, { ...operator, ...headers })).status).toBe(403)
    }
    expect(await listed(host)).toEqual([])
  })

  it('Device pairing: a lost device can change nothing that outlives its removal, let nobody in and throw nobody out', async () => {
    await using host = await startPairing()
    const [lost, kept] = [await pair(host, 'lost'), await pair(host, 'kept')]
    const owners = host.app
      .routes()
      .filter(({ effect, auth }) => effect === 'lasting' && auth === 'bearer')
      .map(({ method, path }) => [method, path.replaceAll(/(?:\*\*)?:\w+/g, 'x')] as const)
    expect(owners.map(([method, path]) => `${method} ${path}`)).toEqual(
      expect.arrayContaining([
        'POST /api/pairing/request',
        'POST /api/config/set',
        'POST /api/config/reload',
        'PUT /api/config/provider',
        'POST /api/providers/x/key',
        'DELETE /api/providers/x/key',
        'PUT /api/providers/x/url',
        'POST /api/webhooks',
        'PUT /api/webhooks/x',
        'POST /api/webhooks/events',
        'PUT /api/webhooks/events/x',
        'POST /api/backup',
        'DELETE /api/backups/x',
        'POST /api/restore',
        'POST /api/plugins/x/reload',
        'POST /api/shutdown',
        'POST /api/restart',
        'PUT /api/budget',
      ]),
    )
    for (const [method, path] of [...owners, ['DELETE', `/api/pairing/devices/${kept.id}`] as const]) {
      expect([`${method} ${path}`, (await host.json(method, path, undefined, lost.bearer)).status]).toEqual([
        `${method} ${path}`,
        403,
      ])
    }
    // Not even by making the key another one.
    expect(
      (await host.json('POST', '/api/config/set', { key: 'api_key', value: 'mine-from-now-on' }, lost.bearer)).status,
    ).toBe(403)
    await host.json('DELETE', `/api/pairing/devices/${lost.id}`, undefined, operator)
    expect((await host.json('GET', '/api/status', undefined, lost.bearer)).status).toBe(401)
    expect((await host.json('GET', '/api/status', undefined, { authorization: `Bearer ${KEY}` })).status).toBe(200)
  })
})
