import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { Header } from 'tar'

/** An entry of an archive as it is, with whatever name and type. */
export interface TarEntry {
  readonly path: string
  readonly text?: string
  readonly type?: 'File' | 'SymbolicLink' | 'Link' | 'CharacterDevice' | 'Directory' | 'SparseFile'
  readonly linkpath?: string
  /** What its header says, in place of the size of the text. */
  readonly size?: number
}

/** A .tgz of these entries, without any check of them. */
export function packEntries(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap(({ path, text = '', type = 'File', linkpath, size }) => {
    const content = Buffer.from(text)
    const head = Buffer.alloc(512)
    new Header({
      path,
      mode: 0o644,
      size: size ?? content.length,
      type,
      mtime: new Date(0),
      ...(linkpath === undefined ? {} : { linkpath }),
    }).encode(head)
    return [head, content, Buffer.alloc((512 - (content.length % 512)) % 512)]
  })
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]))
}
/** A .tgz as `npm pack` makes it. */
export function pack(files: Readonly<Record<string, string>>): Buffer {
  return packEntries(Object.entries(files).map(([name, text]) => ({ path: `package/${name}`, text })))
}

export const sha512 = (bytes: Uint8Array): string => `sha512-${createHash('sha512').update(bytes).digest('base64')}`

export interface FakeRegistry extends AsyncDisposable {
  readonly url: string
  /** Paths that were asked for. */
  readonly requests: string[]
  /** Answers for this path with a redirect. */
  redirect(path: string, to: string): void
  /** `integrity` replaces the right hash; `null` leaves it out. */
  publish(
    name: string,
    version: string,
    archive: Buffer,
    options?: {
      readonly integrity?: string | null
      readonly dependencies?: Readonly<Record<string, string>>
      /** Further fields of the version. */
      readonly more?: object
    },
  ): void
}

/** A registry that speaks the protocol of npm: documents of packages, archives and the search. */
export async function startRegistry(): Promise<FakeRegistry> {
  const packages = new Map<string, Map<string, object>>()
  const archives = new Map<string, Buffer>()
  const redirects = new Map<string, string>()
  const requests: string[] = []
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '/')
    requests.push(path)
    const location = redirects.get(path)
    if (location !== undefined) return void response.writeHead(302, { location }).end()
    const archive = archives.get(path)
    if (archive) return void response.end(archive)
    const answer = path.startsWith('/-/v1/search') ? searchAnswer(packages) : document(packages, path.slice(1))
    response.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer ?? { error: 'not_found' }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    requests,
    redirect: (path, to) => void redirects.set(path, to),
    publish(name, version, archive, { integrity = sha512(archive), dependencies = {}, more = {} } = {}) {
      const path = `/${name}/-/${name.replace(/^.*\//, '')}-${version}.tgz`
      archives.set(path, archive)
      const dist = { tarball: `${url}${path}`, ...(integrity === null ? {} : { integrity }) }
      const versions = packages.get(name) ?? new Map<string, object>()
      packages.set(name, versions.set(version, { ...more, name, version, dependencies, dist }))
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function document(packages: ReadonlyMap<string, ReadonlyMap<string, object>>, name: string): object | undefined {
  const versions = packages.get(name)
  if (!versions) return undefined
  return { name, 'dist-tags': { latest: [...versions.keys()].at(-1) }, versions: Object.fromEntries(versions) }
}
function searchAnswer(packages: ReadonlyMap<string, ReadonlyMap<string, object>>): object {
  const objects = [...packages].map(([name, versions]) => ({
    package: { name, version: [...versions.keys()].at(-1), description: `The package ${name}` },
  }))
  return { objects, total: objects.length }
}
