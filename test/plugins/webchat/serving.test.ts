import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findPage } from '../../../plugins/webchat/assets.ts'
import { buildPage } from '../../../plugins/webchat/build.ts'
import type { BuiltFile } from '../../../plugins/webchat/build.ts'
import { chooseEncoding } from '../../../plugins/webchat/serve-page.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

let folder: string
let built: readonly BuiltFile[]
let host: TestHost

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-page-'))
  built = await buildPage({ outDir: folder })
  host = await startHost({ config: { api_key: 'sesame', plugins: { webchat: { page_dir: folder } } } })
})
afterAll(async () => {
  await host?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

// `fetch` decodes bodies and tidies paths; here the bytes on the wire matter.
function get(
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(host.url)
    request({ hostname, port, path, headers, method, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      )
      response.on('error', reject)
    })
      .on('error', reject)
      .end()
  })
}
const script = (): string => built.find(({ path }) => /index-[^/]*\.js$/.test(path))?.path ?? ''

test('the page and its files need no key, and the API does', async () => {
  for (const path of ['/', script(), '/favicon.svg']) expect((await get(path)).status, path).toBe(200)
  expect((await get('/api/agents')).status).toBe(401)
})

test('the page holds no data, no inline script or style, and nothing of another origin', async () => {
  const { body, headers } = await get('/')
  const html = body.toString()
  expect(headers['content-type']).toBe('text/html; charset=utf-8')
  expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?:\/\//)
  expect(html).not.toContain('sesame')
})

test('each file comes in the smallest form the client takes', async () => {
  const plain = await get(script())
  const gzip = await get(script(), { 'accept-encoding': 'gzip' })
  const brotli = await get(script(), { 'accept-encoding': 'gzip, deflate, br, zstd' })
  expect([plain, gzip, brotli].map(({ headers }) => headers['content-encoding'])).toEqual([undefined, 'gzip', 'br'])
  expect(gunzipSync(gzip.body).equals(plain.body)).toBe(true)
  expect(brotliDecompressSync(brotli.body).equals(plain.body)).toBe(true)
  expect(brotli.body.length).toBeLessThan(gzip.body.length)
  expect(brotli.headers.vary).toContain('accept-encoding')
  expect(new Set([plain, gzip, brotli].map(({ headers }) => headers.etag)).size).toBe(3)
})

test.each([
  [undefined, undefined],
  ['', undefined],
  ['identity', undefined],
  ['gzip', 'gzip'],
  ['br;q=0, gzip', 'gzip'],
  ['br;q=0.0, gzip;q=0', undefined],
  ['*', 'br'],
  ['*;q=0', undefined],
  ['gzip;q=1, *;q=0', 'gzip'],
  ['BR', 'br'],
  ['br; q=nonsense', undefined],
] as const)('accept-encoding %j chooses %j', (header, expected) => {
  expect(chooseEncoding(header, { encodings: { br: 'x.br', gzip: 'x.gz' } })).toBe(expected)
})

test('hashed files are kept for ever and the page is asked for again', async () => {
  expect((await get(script())).headers['cache-control']).toBe('public, max-age=31536000, immutable')
  const first = await get('/', { 'accept-encoding': 'br' })
  expect(first.headers['cache-control']).toBe('no-cache')
  const again = await get('/', { 'accept-encoding': 'br', 'if-none-match': `"other", W/${first.headers.etag}` })
  expect(again.status).toBe(304)
  expect(again.body).toHaveLength(0)
  expect(again.headers.etag).toBe(first.headers.etag)
})

test.each([
  '/assets/nothing.js',
  '/assets/',
  '/assets/../assets.json',
  '/assets/%2e%2e/assets.json',
  '/assets/..%2fassets.json',
  '/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd',
  '/assets//etc/passwd',
  '/assets.json',
  '/index.html',
  '/assets/__proto__',
])('%s is no file of the page', async (path) => {
  const { status, body } = await get(path)
  expect(status).toBeGreaterThanOrEqual(400)
  expect(status).toBeLessThan(500)
  expect(body.toString()).not.toMatch(/root:|"assets"/)
})

test('every answer carries the policy that keeps foreign code out', async () => {
  for (const path of ['/', script(), '/assets/nothing.js']) {
    const policy = (await get(path)).headers['content-security-policy'] ?? ''
    for (const rule of [
      "default-src 'self'",
      "script-src 'self'",
      "style-src 'self'",
      "object-src 'none'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
      "form-action 'self'",
    ])
      expect(policy, path).toContain(rule)
    expect(policy).not.toContain('unsafe')
  }
})

test('what a first visit loads stays within 120 KB, and the worker for long answers within 20 KB', async () => {
  const html = (await get('/')).body.toString()
  const first = built.filter(({ path }) => path === '/' || html.includes(path))
  expect(first.map(({ path }) => /[a-z]+$/.exec(path)?.[0] ?? '/').sort()).toEqual(['/', 'css', 'js', 'svg'])
  const size = (files: typeof built): number => files.reduce((sum, { gzipBytes }) => sum + gzipBytes, 0)
  expect(size(first)).toBeLessThan(120 * 1024)
  expect(size(built.filter(({ path }) => path.includes('markdown-worker')))).toBeLessThan(20 * 1024)
})

test('the page is found beside the built plugin and in dist of the source, and nowhere above the package', async () => {
  const root = await mkdtemp(join(tmpdir(), 'svc-tree-'))
  const place = (path: string): string => pathToFileURL(join(root, path)).href
  try {
    await mkdir(join(root, 'svc/dist/plugins/webchat'), { recursive: true })
    await mkdir(join(root, 'webchat'))
    await writeFile(join(root, 'webchat/assets.json'), '{"assets":[]}')
    await writeFile(join(root, 'svc/package.json'), '{}')
    expect(findPage(place('svc/plugins/webchat/index.ts'))).toBeUndefined()
    await mkdir(join(root, 'svc/dist/webchat'))
    await writeFile(join(root, 'svc/dist/webchat/assets.json'), '{"assets":[]}')
    for (const from of [
      'svc/plugins/webchat/index.ts',
      'svc/dist/plugins/webchat/index.js',
      'svc/dist/plugins/webchat.js',
    ]) {
      expect(findPage(place(from))).toBe(join(root, 'svc/dist/webchat'))
    }
  } finally {
    await rm(root, { recursive: true })
  }
})

test('a daemon without a built page says how to build it, and serves it once it is there', async () => {
  const late = await mkdtemp(join(tmpdir(), 'svc-page-'))
  await using unbuilt = await startHost({
    plugins: ['webchat'],
    listen: false,
    config: { plugins: { webchat: { page_dir: late } } },
  })
  const before = await unbuilt.fetch('/')
  expect(before.status).toBe(503)
  expect(await before.text()).toContain('npm run build')
  await mkdir(join(late, 'assets'))
  await writeFile(join(late, 'index.html'), '<!doctype html><title>late</title>')
  await writeFile(
    join(late, 'assets.json'),
    JSON.stringify({
      assets: [{ path: '/', file: 'index.html', type: 'text/html; charset=utf-8', etag: '"late"', encodings: {} }],
    }),
  )
  const after = await unbuilt.fetch('/')
  expect(await after.text()).toContain('late')
  await rm(late, { recursive: true })
})
