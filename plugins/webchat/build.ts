import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Asset, Encoding } from './assets.ts'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.map': 'application/json',
}

export interface BuiltFile {
  readonly path: string
  readonly bytes: number
  readonly gzipBytes: number
  readonly brotliBytes: number
}

/**
 * Bundles the page into `outDir`, which it empties first, with a compressed copy of every file and the list the plugin
 * serves from. `development` keeps names readable and adds source maps. Throws when the page does not compile.
 */
export async function buildPage(options: {
  readonly outDir: string
  readonly development?: boolean
}): Promise<readonly BuiltFile[]> {
  const { build } = await import('vite')
  const development = options.development ?? false
  await build({
    configFile: false,
    root: fileURLToPath(new URL('page/', import.meta.url)),
    base: '/',
    mode: development ? 'development' : 'production',
    logLevel: 'warn',
    worker: { format: 'es' },
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: options.outDir,
      emptyOutDir: true,
      target: 'es2023',
      minify: development ? false : 'oxc',
      sourcemap: development,
      // The policy of the daemon allows no data: URL but for images, and one file of each kind is the fewest requests.
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  })
  return compress(options.outDir)
}

async function compress(outDir: string): Promise<readonly BuiltFile[]> {
  const entries = await readdir(outDir, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(outDir, join(entry.parentPath, entry.name)))
    .sort()
  await mkdir(outDir, { recursive: true })
  const built = await Promise.all(
    files.map(async (file) => {
      const bytes = await readFile(join(outDir, file))
      const forms: Readonly<Record<Encoding, Uint8Array>> = {
        br: await promisify(brotliCompress)(bytes, {
          params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY },
        }),
        gzip: await promisify(gzip)(bytes, { level: 9 }),
      }
      const encodings: Partial<Record<Encoding, string>> = {}
      for (const [encoding, suffix] of [
        ['br', '.br'],
        ['gzip', '.gz'],
      ] as const) {
        if (forms[encoding].length >= bytes.length) continue
        encodings[encoding] = file + suffix
        await writeFile(join(outDir, file + suffix), forms[encoding])
      }
      const path = file === 'index.html' ? '/' : `/${file.split(sep).join('/')}`
      const asset = {
        path,
        file,
        encodings,
        type: types[extname(file)] ?? 'application/octet-stream',
        etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
      }
      return { asset, size: { path, bytes: bytes.length, gzipBytes: forms.gzip.length, brotliBytes: forms.br.length } }
    }),
  )
  const assets: readonly Omit<Asset, 'encodings'>[] = built.map(({ asset }) => asset)
  // Written last: the plugin serves nothing until the list is there.
  await writeFile(join(outDir, 'assets.json'), `${JSON.stringify({ assets }, undefined, 2)}\n`)
  return built.map(({ size }) => size)
}
