import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { builtPackage } from '../../support/built-package.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const run = promisify(execFile)
const repository = fileURLToPath(new URL('../../..', import.meta.url))
const packages = join(repository, 'node_modules')
/** What is packed beside `dist/`. */
const packed = ['docs', 'LICENSE', 'package.json', 'README.md', 'svc.config.ts']
/** In the place of the build, whose result is there already: puts it where it belongs, as the build does. */
const build = `import { rename } from 'node:fs/promises'
import { keepChunks } from ${JSON.stringify(join(repository, 'core/build/keep.ts'))}
await keepChunks('dist', 'built', Date.now())
await rename('dist', 'before')
await rename('built', 'dist')
`

interface Manifest {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}
const STALE = 'dist/core/stale-abcdefgh.js'
let folder: string
let checkout: string
let tarball: string
let manifest: Manifest

/** Node of this test comes first, `npm` from where the test was started. */
const env = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
  HOME: folder,
  npm_config_cache: process.env['npm_config_cache'] ?? join(process.env['HOME'] ?? folder, '.npm'),
  npm_config_update_notifier: 'false',
  npm_config_loglevel: 'error',
  ...more,
})

/** Packs the checkout; the path of the tarball. */
async function pack(into: string): Promise<string> {
  await mkdir(into)
  await run('npm', ['pack', '--pack-destination', into], { cwd: checkout, env: env() })
  const [file = ''] = await readdir(into)
  return join(into, file)
}

async function listFiles(file: string): Promise<readonly string[]> {
  const { stdout } = await run('tar', ['-tzf', file])
  return stdout.trim().split('\n').sort()
}

/** Lays the package down as `npm install -g` does, with links to the packages that it declares and to no others. */
async function installLinked(prefix: string): Promise<string> {
  const root = join(prefix, 'lib/node_modules/svc')
  await mkdir(join(prefix, 'bin'), { recursive: true })
  await mkdir(root, { recursive: true })
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', root])
  for (const name of Object.keys(manifest.dependencies)) {
    const link = join(root, 'node_modules', name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(join(packages, name), link)
  }
  await symlink('../lib/node_modules/svc/dist/svc.js', join(prefix, 'bin/svc'))
  return root
}

/** Starts the installed command, asks for its health, and stops it by the command. */
async function startAndStop(prefix: string): Promise<void> {
  const home = await mkdtemp(join(folder, 'home-'))
  const svc = join(prefix, 'bin/svc')
  const options = { cwd: folder, env: env({ SVC_HOME: home }) }
  const daemon = spawn(svc, ['start', '--port', '0'], { ...options, stdio: 'pipe' })
  try {
    let output = ''
    const closed = new Promise<number | null>((resolve) => daemon.once('close', (code) => resolve(code)))
    const url = await new Promise<string>((resolve, reject) => {
      for (const stream of [daemon.stdout, daemon.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text
          const [, found] = /svc listening on (http\S+)/.exec(output) ?? []
          if (found !== undefined) resolve(found)
        })
      daemon.once('error', reject)
      void closed.then((code) => reject(new Error(`the daemon ended with ${code}:\n${output}`)))
    })
    const health = await fetch(new URL('/api/health', url))
    expect([health.status, await health.json()]).toMatchObject([200, { status: 'ok' }])
    expect((await fetch(url)).headers.get('content-type')).toContain('text/html')
    const { stdout } = await run(svc, ['stop'], options)
    expect(stdout).toContain('svc stopped')
    expect([await closed, output]).toEqual([0, expect.not.stringMatching(/Cannot find|ERR_MODULE/) as string])
  } finally {
    daemon.kill('SIGKILL')
  }
}

/** Every file that a consumer without the condition `svc-source` is led to. */
function exportedFiles(contracts: readonly string[]): readonly string[] {
  return Object.values(manifest.exports)
    .flatMap((target) => (typeof target === 'string' ? [target] : [target['types'] ?? '', target['default'] ?? '']))
    .flatMap((file) => (file.includes('*') ? contracts.map((name) => file.replaceAll('*', name)) : [file]))
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-pack-'))
  checkout = join(folder, 'checkout')
  for (const name of packed) await cp(join(repository, name), join(checkout, name), { recursive: true })
  manifest = JSON.parse(await readFile(join(checkout, 'package.json'), 'utf8')) as Manifest
  await mkdir(join(checkout, 'core/build'), { recursive: true })
  await writeFile(join(checkout, 'core/build/build.ts'), build)
  await cp(join(await builtPackage(), 'dist'), join(checkout, 'built'), { recursive: true })
  // As a build before this one left it.
  await mkdir(dirname(join(checkout, STALE)), { recursive: true })
  await writeFile(join(checkout, STALE), '')
  tarball = await pack(join(folder, 'packed'))
})
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))

describe('npm pack', () => {
  it('packs what runs, its declarations and its documents, and no source or test', async () => {
    const files = (await listFiles(tarball)).map((file) => file.replace(/^package\//, ''))
    expect([...new Set(files.map((file) => file.split('/')[0]))]).toEqual([
      'LICENSE',
      'README.md',
      'dist',
      'docs',
      'package.json',
      'svc.config.ts',
    ])
    expect(files).toEqual(
      expect.arrayContaining([
        'dist/svc.js',
        'dist/plugins/plugin-admin/pages/plugins.html',
        'dist/types/core/sdk.d.ts',
        'dist/types/tsconfig.json',
        'docs/cli.md',
      ]),
    )
    expect(files.filter((file) => /(?<!\.d)\.tsx?$/.test(file))).toEqual(['svc.config.ts'])
  })

  it('builds first, and packs the same as where nothing was built, without the chunks that the build before it left', async () => {
    expect(existsSync(join(checkout, STALE))).toBe(true)
    const root = await builtPackage()
    const fresh = await readdir(join(root, 'dist'), { recursive: true, withFileTypes: true })
    const built = fresh
      .filter((entry) => entry.isFile() && entry.name !== '.npmignore')
      .map((entry) => `package/${relative(root, join(entry.parentPath, entry.name))}`)
    const files = (await listFiles(tarball)).filter((file) => file.startsWith('package/dist/'))
    expect(files).toEqual(built.toSorted())
  })
})

describe('the installed package', () => {
  it('starts, serves and stops with nothing but its declared dependencies', async () => {
    const prefix = join(folder, 'linked')
    const root = await installLinked(prefix)
    for (const name of ['rolldown', 'vite', 'typescript', 'node'])
      expect(existsSync(join(root, 'node_modules', name))).toBe(false)
    await startAndStop(prefix)
    const { stdout } = await run(join(prefix, 'bin/svc'), ['--version'], { cwd: folder, env: env() })
    expect(stdout).toContain(`svc ${manifest.version} (`)
  })

  it('every module that it exports is found and can be imported by a package beside it', async () => {
    const consumer = join(folder, 'consumer')
    const prefix = join(folder, 'exports')
    const root = await installLinked(prefix)
    await mkdir(join(consumer, 'node_modules'), { recursive: true })
    await symlink(root, join(consumer, 'node_modules/svc'))
    const contracts = (await readdir(join(root, 'dist/contracts'))).map((file) => basename(file, '.js'))
    expect(contracts).toContain('agents')
    const names = Object.entries(manifest.exports)
      .filter(([, target]) => typeof target === 'object')
      .flatMap(([path]) => (path.includes('*') ? contracts.map((name) => path.replace('*', name)) : [path]))
      .map((path) => `svc${path.slice(1)}`)
    const script = `for (const name of ${JSON.stringify(names)}) {
      const exported = Object.keys(await import(name)).length
      if (!import.meta.resolve(name).includes('/svc/dist/')) throw new Error(name)
      console.log(name, exported)
    }`
    await writeFile(join(consumer, 'main.mjs'), script)
    const { stdout } = await run(process.execPath, ['main.mjs'], { cwd: consumer, env: env() })
    expect(stdout.trim().split('\n')).toHaveLength(names.length)
    expect(exportedFiles(contracts).filter((file) => !existsSync(join(root, file)))).toEqual([])
  })

  it('npm installs it globally, where the cache of npm has its dependencies', async (context) => {
    const prefix = join(folder, 'global')
    const flags = ['--global', '--prefix', prefix, '--offline', '--no-audit', '--no-fund']
    const failure = await run('npm', ['install', ...flags, tarball], { cwd: folder, env: env() }).then(
      () => undefined,
      (error: unknown) => String(error),
    )
    if (failure?.includes('ENOTCACHED')) context.skip('the cache of npm lacks a dependency')
    expect(failure).toBeUndefined()
    expect(existsSync(join(prefix, 'lib/node_modules/svc/node_modules/rolldown'))).toBe(false)
    await startAndStop(prefix)
  })
})
