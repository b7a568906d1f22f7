import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { complete, KEY, operator, pair, startPairing } from '../../plugins/pairing/devices.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { runHere } from './here.ts'
import type { Answer } from './here.ts'
import { startCli } from './process.ts'

let home: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-device-'))
  await writeFile(join(home, 'config.toml'), `api_key = "${KEY}"\n`)
  host = await startPairing({}, { home, plugins: ['audit', 'pairing'] })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere([...args, '--home', home])

describe('svc device', () => {
  it('makes a code, and says how a device uses it', async () => {
    expect(await svc('device', 'list')).toMatchObject({
      code: 0,
      stdout: 'No device is paired. `svc device pair` makes a code for one.\n',
    })
    const { code, stdout } = await svc('device', 'pair')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Pairing code: \w{3}-\w{3}\nIt works once, for \d/)])
    const [, given = ''] = /Pairing code: (\S+)/.exec(stdout) ?? []
    expect(stdout).toContain(`curl ${host.url}/api/pairing/complete --json '{"pairing_code": "${given}"`)
    expect((await complete(host, { pairing_code: given, display_name: 'mine\u202e', platform: 'ios' })).status).toBe(
      200,
    )
    const list = await svc('device', 'list')
    expect(list.stdout).toMatch(
      /^NAME +PLATFORM +PAIRED +LAST SEEN +ID\nmine\\u202e +ios +\d+ s ago +\d+ s ago +[0-9a-f-]{36}\n$/,
    )
  })

  it('answers scripts in JSON', async () => {
    const made = JSON.parse((await svc('device', 'pair', '--json')).stdout)
    expect(made).toMatchObject({ pairing_code: expect.any(String) as string, expires_at: expect.any(String) as string })
    await complete(host, { pairing_code: made.pairing_code, display_name: 'script' })
    const { devices } = JSON.parse((await svc('device', 'list', '--json')).stdout)
    const { device_id: id } = devices.find((device: { display_name: string }) => device.display_name === 'script')
    expect(JSON.parse((await svc('device', 'remove', 'script', '--json')).stdout)).toEqual({
      ok: true,
      device_id: id,
      effects: [],
      effects_total: 0,
      stopped: [],
      staying: [],
    })
  })

  it('waits for the device', async () => {
    const running = startCli(['device', 'pair', '--wait', '--home', home])
    const [, code] = await running.prints(/Pairing code: (\S+)/)
    await complete(host, { pairing_code: code, display_name: 'awaited', platform: 'android' })
    expect(await running.ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/paired: awaited \(android, [0-9a-f-]{36}\)\n$/) as string,
    })
  })

  it('removes by name or by the beginning of an id, and says which there are', async () => {
    const [one, two] = [await pair(host, 'twin'), await pair(host, 'twin')]
    expect(await svc('device', 'remove', 'twin')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(one.id) as string,
    })
    expect(await svc('device', 'remove', one.id.slice(0, 13))).toMatchObject({
      code: 0,
      stdout: `removed twin (${one.id}): its key opens nothing any more\n`,
    })
    expect((await host.json('GET', '/api/pairing/devices', undefined, one.bearer)).status).toBe(401)
    expect(await svc('device', 'remove', 'twin')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(two.id) as string,
    })
    expect(await svc('device', 'remove', 'nobody')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('mine') as string,
    })
    expect((await svc('device', 'remove')).code).toBe(2)
  })

  it('is refused with the key of a device', async () => {
    const { bearer } = await pair(host, 'guest')
    const answer = await runHere(['device', 'pair', '--url', host.url], { SVC_API_KEY: bearer.authorization.slice(7) })
    expect(answer).toMatchObject({
      code: 5,
      stdout: '',
      stderr: expect.stringContaining('A paired device cannot do this') as string,
    })
    const { devices } = (await host.json('GET', '/api/pairing/devices', undefined, operator)).body
    expect(devices.map((device: { display_name: string }) => device.display_name)).toContain('guest')
  })

  it('says how pairing is enabled where it is not', async () => {
    const place = await mkdtemp(join(tmpdir(), 'svc-device-off-'))
    try {
      await using off = await startHost({ home: place, plugins: ['audit', 'pairing'] })
      expect(await runHere(['device', 'pair', '--home', off.home])).toMatchObject({
        code: 4,
        stderr: expect.stringContaining('enabled = true under [pairing]') as string,
      })
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  })
})
