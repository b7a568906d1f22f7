import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inspectPlugin } from '../../../plugins/plugin-admin/inspect/inspect.ts'
import { pack, packEntries, sha512 } from '../../support/plugin-registry.ts'
import type { TarEntry } from '../../support/plugin-registry.ts'
import { greeter, openStage } from './stage.ts'
import type { Stage } from './stage.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const signer = publicKey.export({ format: 'der', type: 'spki' }).subarray(12).toString('hex')

let stage: Stage
beforeAll(async () => {
  stage = await openStage({
    trusted_keys: [signer],
    max_unpacked_bytes: 100_000,
    max_total_bytes: 150_000,
    max_files: 20,
    max_dependencies: 3,
    max_archive_bytes: 50_000,
    max_metadata_bytes: 20_000,
    max_inspection_bytes: 100_000,
    max_problem_chars: 500,
  })
})
afterAll(() => stage[Symbol.asyncDispose]())

const greeting = async (): Promise<unknown> => (await stage.call('GET', '/api/greeter')).body.text
const hidden = async (): Promise<readonly string[]> =>
  (await readdir(join(stage.home, 'plugins'))).filter((name) => name.startsWith('.'))
const remove = (name = 'greeter') => stage.call('POST', '/api/plugins/uninstall', { name })

describe('a plugin is installed', () => {
  it('from the registry, with its dependencies in its own folder, and its permissions are asked for', async () => {
    const { registry, call } = stage
    const lib = (name: string, code: string) =>
      pack({ 'package.json': `{"name":"${name}","main":"index.js"}`, 'index.js': code })
    registry.publish('inner', '1.2.0', lib('inner', "module.exports = () => 'one'"))
    registry.publish('inner', '2.0.0', lib('inner', "module.exports = () => 'two'"))
    registry.publish('outer', '1.0.0', lib('outer', "module.exports = () => require('inner')()"), {
      dependencies: { inner: '^1.0.0' },
    })
    const files = greeter('hello')
    files['package.json'] = JSON.stringify({
      version: '1.0.0',
      dependencies: { inner: '^2.0.0', outer: '*', valibot: '*' },
    })
    files['index.ts'] = `import inner from 'inner'\nimport outer from 'outer'\n${files['index.ts']}`.replace(
      "'hello'",
      'inner() + outer()',
    )
    const archive = pack(files)
    registry.publish('@acme/svc-greeter', '1.0.0', archive)

    const asked = await call('POST', '/api/plugins/install', { name: '@acme/svc-greeter' })
    expect(asked).toMatchObject({
      status: 409,
      body: {
        error: {
          code: 'conflict',
          details: { reason: 'permissions_required', missing: ['route:/api/greeter'], hash: sha512(archive) },
        },
      },
    })
    expect(existsSync(join(stage.home, 'plugins', 'greeter'))).toBe(false)
    const done = await call('POST', '/api/plugins/install', {
      name: '@acme/svc-greeter@^1',
      accept: ['route:/api/greeter'],
    })
    expect(done).toMatchObject({
      status: 201,
      body: {
        installed: true,
        name: 'greeter',
        version: '1.0.0',
        restart_required: false,
        hash: sha512(archive),
        dependencies: ['inner@2.0.0', 'outer@1.0.0', 'inner@1.2.0'],
      },
    })
    expect(await greeting()).toBe('twoone')
    expect((await call('GET', '/api/plugins/greeter')).body).toMatchObject({
      state: 'loaded',
      access: 'declared',
      permissions: ['route:/api/greeter'],
      registered: { routes: ['GET /api/greeter'] },
      installed: {
        source: 'registry:@acme/svc-greeter@^1',
        hash: sha512(archive),
        accepted_permissions: ['route:/api/greeter'],
      },
    })
    expect((await call('GET', '/api/plugins/registries')).body.registries[0]).toMatchObject({
      name: 'npm',
      plugins: expect.arrayContaining([expect.objectContaining({ name: '@acme/svc-greeter', installed: true })]),
    })
    expect((await call('GET', '/api/extensions')).body).toMatchObject({
      extensions: [{ name: 'greeter', status: 'ready' }],
      total: 1,
    })
    expect((await call('GET', '/api/extensions/greeter')).body).toMatchObject({ installed: true, health: 'ok' })
    expect(await call('POST', '/api/plugins/greeter/install-deps', {})).toMatchObject({
      status: 200,
      body: { success: true },
    })
    expect(await greeting()).toBe('twoone')
    const audited = (await stage.audited()).filter((one) => one.includes(sha512(archive)))
    expect(audited.join('\n')).toMatch(/plugin "greeter" 1\.0\.0 installed, registry:@acme/)

    expect(await call('POST', '/api/extensions/uninstall', { name: 'greeter' })).toMatchObject({
      body: { status: 'uninstalled' },
    })
    expect((await call('GET', '/api/plugins/greeter')).status).toBe(404)
    expect((await stage.audited()).join('\n')).toMatch(/plugin "greeter" 1\.0\.0 removed .*sha512-/)
    expect(await hidden()).toEqual([])
  })

  it('from a signed archive, an address and a folder, with the right hash and signature only', async () => {
    const archive = pack(greeter('archived'))
    const path = await stage.file('greeter.tgz', archive)
    const wrong = await stage.install({ path, hash: `sha512-${Buffer.alloc(64).toString('base64')}` })
    expect([wrong.status, wrong.body.error.message]).toEqual([400, expect.stringContaining('does not have the hash')])
    expect((await stage.install({ path, hash: 'md5-abc' })).body.error.message).toContain('is no hash')
    const signature = sign(null, archive, privateKey).toString('base64')
    const other = sign(null, archive, generateKeyPairSync('ed25519').privateKey).toString('base64')
    expect((await stage.install({ path, signature: other })).status).toBe(403)
    expect((await stage.install({ path, signature: 'short' })).status).toBe(400)
    expect(await stage.install({ source: 'local', path, hash: sha512(archive), signature })).toMatchObject({
      status: 201,
      body: { signed_by: signer },
    })
    expect(await stage.install({ path })).toMatchObject({
      status: 409,
      body: { error: { details: { reason: 'installed_already' } } },
    })
    await remove()

    stage.registry.publish('greeter', '1.0.0', archive)
    const url = `${stage.registry.url}/greeter/-/greeter-1.0.0.tgz`
    expect((await stage.install({ url })).body.error.message).toContain('hash: is missing')
    expect((await stage.install({ source: 'url', url, hash: sha512(archive) })).status).toBe(201)
    await remove()

    const folder = join(await stage.file('unused', ''), '..', 'work')
    await mkdir(folder)
    for (const [name, text] of Object.entries(greeter('from a folder'))) await writeFile(join(folder, name), text)
    expect(await stage.install({ path: folder })).toMatchObject({ status: 201, body: { source: `folder:${folder}` } })
    expect(await greeting()).toBe('from a folder')
    await remove()
  })
})

it('a deprecated version is installed, and the registry is quoted', async () => {
  const { registry } = stage
  registry.publish('aged', '1.0.0', pack(greeter('aged')), { more: { deprecated: 'use svc-greeter' } })
  expect((await stage.install({ name: 'aged' })).body).toMatchObject({
    version: '1.0.0',
    deprecated: 'use svc-greeter',
  })
  await remove()
})

it('of two installations of one plugin at the same time one is refused', async () => {
  const path = await stage.file('twice.tgz', pack(greeter('once')))
  const answers = await Promise.all([stage.install({ path }), stage.install({ path })])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409])
  expect(await greeting()).toBe('once')
  await remove()
  expect(await hidden()).toEqual([])
})

describe('what is refused leaves nothing behind', () => {
  const hostile: readonly (readonly [what: string, entries: readonly TarEntry[], message: string])[] = [
    ['a name that leads out', [{ path: 'package/../../evil.ts', text: 'x' }], 'leads out of its folder'],
    ['an absolute name', [{ path: '/tmp/evil.ts', text: 'x' }], 'leads out of its folder'],
    ['a link', [{ path: 'package/index.ts', type: 'SymbolicLink', linkpath: '/etc/passwd' }], 'SymbolicLink'],
    ['a hard link', [{ path: 'package/index.ts', type: 'Link', linkpath: 'package/a' }], 'Link'],
    ['a sparse file', [{ path: 'package/data', type: 'SparseFile', size: 10_000_000_000 }], 'is damaged'],
    ['a size that is not there', [{ path: 'package/data', size: 10_000_000_000 }], 'max_unpacked_bytes (100000)'],
    ['a device', [{ path: 'package/zero', type: 'CharacterDevice' }], 'CharacterDevice'],
    [
      'a file twice',
      [
        { path: 'package/a.ts', text: 'x' },
        { path: 'package/a.ts', text: 'y' },
      ],
      'twice',
    ],
    [
      'too many files',
      Array.from({ length: 21 }, (_, index) => ({ path: `package/${index}.ts`, text: 'x' })),
      'max_files (20)',
    ],
    ['too many bytes', [{ path: 'package/a.ts', text: 'x'.repeat(200_000) }], 'max_unpacked_bytes (100000)'],
    ['no code', [{ path: 'package/readme.md', text: 'x' }], 'no index.ts or index.js'],
  ]
  it.each(hostile)('an archive with %s', async (_what, entries, message) => {
    const answer = await stage.install({ path: await stage.file('hostile.tgz', packEntries(entries)) })
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
    expect(answer.body.error.message).toContain(message)
    expect(await hidden()).toEqual([])
    expect(existsSync('/tmp/evil.ts')).toBe(false)
  })

  it.each([
    ['no gzip', Buffer.from([0x1f, 0x8b, 1, 2, 3]), 'is damaged'],
    ['gzip within gzip', gzipSync(pack(greeter('x'))), 'compressed twice'],
    ['zstd', zstdCompressSync(gunzipSync(pack(greeter('x')))), 'is damaged'],
    ['no tar', Buffer.from('nothing'.repeat(200)), 'is damaged'],
    ['another interface', pack(greeter('x', { apiVersion: '^9.0.0' })), 'is written for version ^9.0.0'],
    ['the name of a built-in plugin', pack(greeter('x', { name: 'audit' })), 'is the name of a built-in plugin'],
    [
      'code that starts a program',
      pack({ 'index.ts': "import { execFileSync } from 'node:child_process'; execFileSync('true')" }),
      'restricted',
    ],
    [
      'code that reads the daemon',
      pack({ 'index.ts': "import { readFileSync } from 'node:fs'; readFileSync('/etc/passwd')" }),
      'restricted',
    ],
    ['code that ends its process', pack({ 'index.ts': 'process.exit(0)' }), 'ended the process'],
    [
      'a dependency that is an address',
      pack({ ...greeter('x'), 'package.json': '{"dependencies":{"a":"git+ssh://x/y"}}' }),
      'only versions of the registry',
    ],
    [
      'an unknown dependency',
      pack({ ...greeter('x'), 'package.json': '{"dependencies":{"nothing-here":"1"}}' }),
      'has no package',
    ],
  ])('an archive with %s', async (_what, archive, message) => {
    const answer = await stage.install({ path: await stage.file('bad.tgz', archive) })
    expect([answer.status, answer.body.error.message]).toEqual([expect.any(Number), expect.stringContaining(message)])
    expect(answer.status).toBeLessThan(500)
    expect(await hidden()).toEqual([])
  })

  it.each([
    ['a problem without an end', "throw new Error('x'.repeat(5_000_000))", 'xxx…'],
    [
      'an answer without an end',
      "import { writeSync } from 'node:fs'; for (;;) writeSync(3, 'x'.repeat(100_000))",
      'max_inspection_bytes (100000)',
    ],
    ['a message of its own', "process.send({ problem: 'x'.repeat(5_000_000) })", 'process.send is not a function'],
  ])('code that answers with %s', async (_what, code, message) => {
    const answer = await stage.install({ path: await stage.file('bad.tgz', pack({ 'index.ts': code })) })
    expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringContaining(message)])
    expect(answer.body.error.message.length).toBeLessThan(700)
  })

  it.each([
    [{}, 'name: is missing'],
    [{ path: 'relative.tgz' }, 'must be absolute'],
    [{ path: '/nothing/here.tgz' }, 'does not exist'],
    [{ name: 'svc greeter' }, 'is not the name of an npm package'],
    [{ name: 'unknown-package' }, 'has no package'],
    [{ url: 'ftp://example.org/x.tgz' }, 'http or https'],
    [{ source: 'git', url: 'https://example.org/repository' }, 'is no repository on GitHub'],
    [{ name: 'x', registry: 'mine' }, 'no registry "mine"'],
  ])('the request %j', async (body, message) => {
    const { status, body: answer } = await stage.install(body)
    expect(answer.error.message).toContain(message)
    expect(status).toBeLessThan(500)
  })

  it('a package whose hash in the registry is missing or wrong', async () => {
    const archive = pack(greeter('x'))
    stage.registry.publish('unhashed', '1.0.0', archive, { integrity: null })
    stage.registry.publish('tampered', '1.0.0', archive, { integrity: sha512(Buffer.from('another')) })
    expect((await stage.install({ name: 'unhashed' })).body.error.message).toContain('names no sha512 hash')
    expect((await stage.install({ name: 'tampered' })).body.error.message).toContain('does not have the hash')
  })

  it.each(['http://169.254.169.254/x.tgz', 'http://[::1]/x.tgz', 'http://10.0.0.1/x.tgz'])(
    'an archive behind a redirect to %s',
    async (to) => {
      const { registry } = stage
      registry.publish('moved', '1.0.0', pack(greeter('x')))
      registry.redirect('/moved/-/moved-1.0.0.tgz', to)
      const { status, body } = await stage.install({ name: 'moved' })
      expect([status, body.error.message]).toEqual([403, expect.stringContaining('are refused')])
      expect(await hidden()).toEqual([])
    },
  )

  it('a plugin whose dependencies are small each and too large together', async () => {
    const { registry } = stage
    const install = async (dependencies: object, more: Readonly<Record<string, string>> = {}) => {
      const files = { ...greeter('x'), ...more, 'package.json': JSON.stringify({ dependencies }) }
      const { status, body } = await stage.install({ path: await stage.file('sum.tgz', pack(files)) })
      return [status, body.error?.message]
    }
    for (const name of ['heavy-a', 'heavy-b'])
      registry.publish(name, '1.0.0', pack({ 'index.js': `//${'x'.repeat(80_000)}` }))
    const refusal = [413, expect.stringContaining('max_total_bytes (150000)')]
    expect(await install({ 'heavy-a': '1', 'heavy-b': '1' })).toEqual(refusal)
    expect(await install({ 'heavy-a': '1' }, { 'data.txt': 'x'.repeat(80_000) })).toEqual(refusal)
    expect(await hidden()).toEqual([])
    expect(await install({ 'heavy-a': '1' })).toEqual([201, undefined])
    await remove()
  })

  it('a plugin about whose dependencies the registry says too much, each a little', async () => {
    const { registry, install } = stage
    const notes = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`note-${index}`, '1.0.0']))
    for (const name of ['wordy-a', 'wordy-b'])
      registry.publish(name, '1.0.0', pack({ 'index.js': '' }), { more: { optionalDependencies: notes } })
    const dependencies = { 'wordy-a': '1', 'wordy-b': '1' }
    const path = await stage.file(
      'wordy.tgz',
      pack({ ...greeter('x'), 'package.json': JSON.stringify({ dependencies }) }),
    )
    const { status, body } = await install({ path })
    expect([status, body.error?.message]).toEqual([413, expect.stringContaining('max_metadata_bytes (20000)')])
    expect(await hidden()).toEqual([])
  })

  it('an archive that is too large, code that never answers, and more dependencies than permitted', async () => {
    const large = await stage.file('large.tgz', randomBytes(60_000))
    expect((await stage.install({ path: large })).body.error.message).toContain('max_archive_bytes (50000)')
    const folder = join(large, '..', 'endless')
    await mkdir(folder)
    await writeFile(join(folder, 'index.ts'), 'for (;;);')
    const limits = { inspect_timeout_ms: 400, max_inspection_bytes: 1000, max_problem_chars: 100 }
    await expect(inspectPlugin(folder, limits)).rejects.toThrow('inspect_timeout_ms (400)')
    const names = ['a', 'b', 'c', 'd']
    for (const name of names) stage.registry.publish(name, '1.0.0', pack({ 'index.js': '' }))
    const dependencies = Object.fromEntries(names.map((name) => [name, '1']))
    const many = pack({ ...greeter('x'), 'package.json': JSON.stringify({ dependencies }) })
    const answer = await stage.install({ path: await stage.file('many.tgz', many) })
    expect([answer.status, answer.body.error.message]).toEqual([413, expect.stringContaining('max_dependencies (3)')])
  })
})
