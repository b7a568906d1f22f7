import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { generateSigner, signManifest } from '../../plugins/agents/signing/envelope.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const signer = generateSigner()
const toml = (name: string, version = '1.0.0', more = ''): string =>
  `name = "${name}"\nversion = "${version}"\n\n[capabilities]\ntools = ["system_time"]\n${more}`
const signed = (name: string, version = '1.0.0', more = '', key = signer.privatePem) =>
  signManifest({ manifest: toml(name, version, more), name, version }, 'ops', key)

const start = (policy: 'off' | 'warn' | 'require'): Promise<TestHost> =>
  startHost({
    listen: false,
    memory: true,
    plugins: ['agents', 'audit', 'security', 'cluster', 'journal', 'sessions', 'delegation', 'templates'],
    config: { manifest_signing: { policy, trusted_signers: [signer.publicKey] } },
  })
const spawn = (host: TestHost, body: object) => host.json('POST', '/api/agents', body)

describe('signed manifests', () => {
  it('make agents, and the agent tells who signed it', async () => {
    await using host = await start('require')
    const made = await spawn(host, { signed_manifest: signed('scout') })
    expect(made).toMatchObject({ status: 201, body: { name: 'scout', warnings: [] } })
    expect((await host.json('GET', `/api/agents/${made.body.agent_id}`)).body).toMatchObject({
      manifest_toml: toml('scout'),
      signed_by: `ops (${signer.publicKey})`,
    })
    expect(
      await spawn(host, { manifest_toml: toml('second'), signed_manifest: JSON.stringify(signed('second')) }),
    ).toMatchObject({ status: 201 })
  })

  it('are refused when they are not believed, whatever the policy, and the audit log says so', async () => {
    for (const policy of ['off', 'warn', 'require'] as const) {
      await using host = await start(policy)
      const envelope = signed('scout')
      for (const [change, message] of [
        [{ manifest: toml('scout').replace('system_time', '*') }, 'hash'],
        [{ signature: '0'.repeat(128) }, 'signature'],
        [signed('scout', '1.0.0', '', generateSigner().privatePem), 'trusted_signers'],
        [{ signer_id: 'root' }, 'signature'],
      ] as const) {
        expect(await spawn(host, { signed_manifest: { ...envelope, ...change } })).toMatchObject({
          status: 403,
          body: { error: { code: 'forbidden', message: expect.stringContaining(message) as string } },
        })
      }
      expect((await host.json('GET', '/api/audit/recent?event_type=auth_attempt')).body.total).toBe(4)
      expect((await host.json('GET', '/api/agents')).body.map(({ name }: { name: string }) => name)).toEqual([
        'assistant',
      ])
    }
  })

  it('are refused as malformed when they are none, or differ from what stands beside them', async () => {
    await using host = await start('warn')
    const envelope = signed('scout')
    for (const body of [
      { signed_manifest: 7 },
      { signed_manifest: '{' },
      { signed_manifest: { ...envelope, signature: 'ab' } },
      { signed_manifest: envelope, manifest_toml: toml('other') },
      { signed_manifest: envelope, name: 'other' },
      { signed_manifest: envelope, template: 'assistant' },
    ])
      expect(await spawn(host, body)).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } })
  })
})

describe('a check of a signed manifest', () => {
  const check = (host: TestHost, body: object) => host.json('POST', '/api/agents/validate', body)

  it('refuses what making the agent would refuse, in the same words, and makes nothing', async () => {
    await using host = await start('require')
    const envelope = signed('scout')
    for (const body of [
      { signed_manifest: { ...envelope, manifest: toml('scout').replace('system_time', '*') } },
      { signed_manifest: { ...envelope, signature: '0'.repeat(128) } },
      { signed_manifest: signed('scout', '1.0.0', '', generateSigner().privatePem) },
      { signed_manifest: { ...envelope, signer_id: 'root' } },
      { signed_manifest: 7 },
      { signed_manifest: '{' },
      { signed_manifest: envelope, manifest_toml: toml('other') },
    ]) {
      const made = await spawn(host, body)
      expect(made.status).toBeGreaterThanOrEqual(400)
      const { status, body: refused } = await check(host, body)
      expect([status, refused.error.code, refused.error.message]).toEqual([
        made.status,
        made.body.error.code,
        made.body.error.message,
      ])
    }
    expect(await check(host, { signed_manifest: envelope })).toMatchObject({
      status: 200,
      body: { valid: true, manifest_toml: toml('scout'), warnings: [] },
    })
    expect((await host.json('GET', '/api/agents')).body).toHaveLength(1)
  })

  it('tells its faults, and that it is older than that of the agent', async () => {
    await using host = await start('require')
    const wrong = signed('scout', '1.0.0', '\n[model]\ntemperature = 9\n')
    expect((await check(host, { signed_manifest: wrong })).body).toMatchObject({
      valid: false,
      faults: [{ key: 'model.temperature', line: 8 }],
    })
    const id = (await spawn(host, { signed_manifest: signed('scout', '1.2.0') })).body.agent_id
    expect((await check(host, { signed_manifest: signed('scout', '1.1.0'), agent_id: id })).body).toMatchObject({
      valid: false,
      faults: [{ message: expect.stringContaining('1.1.0 is older') as string }],
    })
    expect((await check(host, { signed_manifest: signed('scout', '1.3.0'), agent_id: id })).body.valid).toBe(true)
  })

  it('changes no text that was signed, and needs a manifest', async () => {
    await using host = await start('warn')
    const edits = { description: 'x' }
    expect((await check(host, { signed_manifest: signed('scout'), edits })).status).toBe(400)
    expect((await check(host, {})).status).toBe(400)
    expect((await check(host, { manifest_toml: toml('plain') })).body.warnings).toEqual(['the manifest is not signed'])
  })

  it('without a signature says that require needs one', async () => {
    await using host = await start('require')
    expect((await check(host, { manifest_toml: toml('plain') })).body).toMatchObject({
      valid: true,
      warnings: [expect.stringContaining('signed by a trusted key') as string],
    })
  })
})

describe('the policy', () => {
  it('require refuses unsigned manifests at every entry point', async () => {
    await using host = await start('require')
    const scout = (await spawn(host, { signed_manifest: signed('scout') })).body.agent_id
    expect(await spawn(host, { manifest_toml: toml('plain') })).toMatchObject({
      status: 403,
      body: { error: { message: expect.stringContaining('signed_manifest') as string } },
    })
    expect(
      (
        await host.json('POST', '/api/agents/bulk', {
          agents: [
            { manifest_toml: toml('bulk') },
            { signed_manifest: signed('bulk-signed') },
            { template: 'assistant', name: 'shipped' },
          ],
        })
      ).body,
    ).toMatchObject({ succeeded: 2, failed: 1, results: [{ success: false }, { success: true }, { success: true }] })
    expect(await host.json('PATCH', `/api/agents/${scout}`, { manifest_toml: toml('scout', '1.1.0') })).toMatchObject({
      status: 403,
    })
    expect(await host.json('PUT', `/api/agents/${scout}/tools`, { capabilities_tools: ['*'] })).toMatchObject({
      status: 403,
      body: { error: { message: expect.stringContaining('capabilities.tools') as string } },
    })
    expect((await host.json('GET', `/api/agents/${scout}`)).body).toMatchObject({
      version: '1.0.0',
      capabilities: { tools: ['system_time'] },
    })
    // What takes rights away, or has nothing to do with rights, needs no new signature.
    expect(await host.json('PUT', `/api/agents/${scout}/tools`, { capabilities_tools: [] })).toMatchObject({
      status: 200,
    })
    expect(await host.json('PUT', `/api/agents/${scout}/update`, { description: 'looks around' })).toMatchObject({
      status: 200,
    })
    expect(await host.json('POST', `/api/agents/${scout}/clone`, {})).toMatchObject({ status: 201 })
  })

  it('require holds for what is in the database: a row that no signature covers is listed and does not run', async () => {
    await using host = await startHost({
      listen: false,
      plugins: ['agents', 'audit', 'security', 'cluster', 'journal', 'sessions', 'delegation'],
      config: { manifest_signing: { policy: 'require', trusted_signers: [signer.publicKey] } },
    })
    const ids = new Map<string, string>()
    for (const name of ['scout', 'edited', 'forged', 'other-key', 'unsigned', 'kept'])
      ids.set(name, (await spawn(host, { signed_manifest: signed(name) })).body.agent_id)
    const db = new Sqlite(join(host.home, 'data', 'svc.db'))
    const set = (name: string, values: Record<string, string | null>): void => {
      for (const [column, value] of Object.entries(values))
        db.prepare(`UPDATE agents_agent SET ${column} = ? WHERE name = ?`).run(value, name)
    }
    const wide = (name: string): string => toml(name).replace('system_time', '*')
    set('edited', { manifest_toml: toml('edited').replace('"system_time"', '') })
    set('forged', { manifest_toml: wide('forged') })
    const own = signManifest(
      { manifest: wide('other-key'), name: 'other-key', version: '1.0.0' },
      'ops',
      generateSigner().privatePem,
    )
    set('other-key', { manifest_toml: wide('other-key'), envelope: JSON.stringify(own) })
    set('unsigned', { signed_by: null, envelope: null })
    set('assistant', { manifest_toml: `${toml('assistant')}shell = ["*"]\n` })
    db.close()
    await host.app.host.reload('agents')
    const agents = (await host.json('GET', '/api/agents')).body as readonly { name: string; state: string }[]
    expect(Object.fromEntries(agents.map(({ name, state }) => [name, state]))).toEqual({
      assistant: 'Stopped',
      scout: 'Running',
      edited: 'Running',
      forged: 'Stopped',
      'other-key': 'Stopped',
      unsigned: 'Stopped',
      kept: 'Running',
    })
    for (const [name, why] of [
      ['forged', 'a right that the signed one has not: capabilities.tools: "*"'],
      ['other-key', 'not among manifest_signing.trusted_signers'],
      ['unsigned', 'is not signed'],
    ] as const) {
      const { body } = await host.json('GET', `/api/agents/${ids.get(name)}`)
      expect(body).toMatchObject({ warnings: [expect.stringContaining(why)], capabilities: { tools: [] } })
    }
    // The signed manifest sets it right.
    const again = await host.json('PATCH', `/api/agents/${ids.get('forged')}`, { signed_manifest: signed('forged') })
    expect(again.status).toBe(200)
    expect((await host.json('GET', `/api/agents/${ids.get('forged')}`)).body).toMatchObject({
      state: 'Running',
      warnings: [],
    })
  })

  it('require takes a newer signed manifest in place of an older one, and not the other way round', async () => {
    await using host = await start('require')
    const scout = (await spawn(host, { signed_manifest: signed('scout', '1.2.0') })).body.agent_id
    const replace = (version: string) =>
      host.json('PATCH', `/api/agents/${scout}`, { signed_manifest: signed('scout', version) })
    expect(await replace('1.10.0')).toMatchObject({ status: 200 })
    expect(await replace('1.9.9')).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining('1.9.9 is older') as string } },
    })
  })

  it('warn takes an unsigned manifest and says so; a right that is added later ends what the signature stood for', async () => {
    await using host = await start('warn')
    const { body: plain } = await spawn(host, { manifest_toml: toml('plain') })
    expect(plain.warnings).toEqual(['the manifest is not signed'])
    expect(
      (await host.json('PATCH', `/api/agents/${plain.agent_id}`, { manifest_toml: `${toml('plain')}\n` })).body
        .warnings,
    ).toEqual(['the manifest is not signed'])
    expect((await host.json('PATCH', `/api/agents/${plain.agent_id}`, { description: 'x' })).body.warnings).toEqual([])
    const scout = (await spawn(host, { signed_manifest: signed('scout') })).body.agent_id
    await host.json('PUT', `/api/agents/${scout}/tools`, { capabilities_tools: ['*'] })
    expect((await host.json('GET', `/api/agents/${scout}`)).body.signed_by).toBeNull()
  })

  it('off says nothing', async () => {
    await using host = await start('off')
    expect((await spawn(host, { manifest_toml: toml('plain') })).body.warnings).toEqual([])
  })
})
