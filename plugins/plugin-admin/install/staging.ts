import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, lstat, mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { removeFolder } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import { fetchFrom, orUnavailable } from './fetch.ts'
import type { Settings } from '../settings.ts'
import { unpack } from './archive.ts'
import { STAGING } from './folders.ts'
import { integrityOf, integrityOfFolder, verifyIntegrity } from './integrity.ts'
import { Registry } from './registry.ts'
import type { InstallRequest } from '../schema.ts'
import type { Source } from './request.ts'
import { verifySignature } from './signature.ts'

export interface StagingDeps {
  readonly fetch: Fetch
  readonly settings: Settings
}

/** Staging folders of this process. */
export const inUse = new Set<string>()

/** Files of a plugin on their way into place: a hidden folder beside the plugins, which nothing loads. */
export class Staging implements AsyncDisposable {
  readonly folder: string
  /** Of the archive, or of the folder it was copied from. */
  hash = ''
  /** The trusted key that signed the archive. */
  signedBy: string | undefined
  /** The archive as it was fetched; `undefined` for a folder. */
  archive: Uint8Array | undefined
  /** Why the registry says that this version should not be used. */
  deprecated: string | undefined

  private constructor(folder: string) {
    this.folder = folder
  }
  static async make(plugins: string): Promise<Staging> {
    const folder = join(plugins, `${STAGING}${randomUUID()}`)
    inUse.add(folder)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return new Staging(folder)
  }

  /** Fetches the files and checks hash and signature before any of them is written. */
  async fill(source: Source, request: InstallRequest, deps: StagingDeps): Promise<void> {
    const { settings } = deps
    if (source.kind === 'folder') {
      refuseUnsigned(request, settings, 'a folder has none, pack it with `npm pack`')
      await copyFolder(source.path, this.folder, settings)
      this.hash = await integrityOfFolder(this.folder)
      if (request.hash !== undefined && request.hash !== this.hash)
        throw new Refusal('invalid_request', `The folder has the hash ${this.hash}, not ${request.hash}`)
      return
    }
    const { bytes, deprecated } = await readArchive(source, deps)
    this.deprecated = deprecated
    if (request.hash !== undefined) verifyIntegrity(bytes, request.hash, 'The archive')
    if (request.signature === undefined) refuseUnsigned(request, settings, 'send it as signature')
    else this.signedBy = await verifySignature(bytes, request.signature, settings.trusted_keys)
    if (source.kind === 'url' && new URL(source.url).protocol === 'http:' && request.hash === undefined)
      throw new Refusal(
        'invalid_request',
        'hash: is missing; an archive that comes over http can be changed on its way',
      )
    await unpack(bytes, this.folder, settings)
    this.hash = integrityOf(bytes)
    this.archive = bytes
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeFolder(this.folder)
    inUse.delete(this.folder)
  }
}

function refuseUnsigned({ signature }: InstallRequest, settings: Settings, advice: string): void {
  if (signature !== undefined) throw new Refusal('invalid_request', 'signature: only an archive can have one')
  if (settings.require_signature)
    throw new Refusal('forbidden', `plugins.plugin-admin.require_signature asks for a signature: ${advice}`)
}

interface FetchedArchive {
  readonly bytes: Uint8Array
  readonly deprecated?: string | undefined
}
async function readArchive(source: Source, { fetch, settings }: StagingDeps): Promise<FetchedArchive> {
  const maxBytes = settings.max_archive_bytes
  if (source.kind === 'registry') {
    const registry = new Registry(fetch, settings)
    const found = await registry.resolve(source.name, source.range)
    return { bytes: await registry.download(found), deprecated: found.deprecated }
  }
  if (source.kind === 'url' || source.kind === 'git')
    return { bytes: await orUnavailable((await fetchFrom(fetch, source.url, { maxBytes })).bytes()) }
  if ('bytes' in source) {
    const { bytes, from } = source
    if (bytes.length <= maxBytes) return { bytes }
    throw new Refusal('payload_too_large', `The archive of ${from} is larger than max_archive_bytes (${maxBytes})`)
  }
  const { path } = source as { readonly path: string }
  const facts = await stat(path).catch(() => undefined /* told apart below */)
  if (!facts?.isFile()) throw new Refusal('not_found', `${path} does not exist on the machine of the daemon`)
  if (facts.size > maxBytes)
    throw new Refusal('payload_too_large', `${path} is larger than max_archive_bytes (${maxBytes})`)
  return { bytes: await readFile(path) }
}

/** Links are refused: what they name would be another file once the folder is copied. */
async function copyFolder(from: string, to: string, { max_files: max, max_unpacked_bytes: maxBytes }: Settings) {
  const isCode = (name: string): boolean => !name.startsWith('.') && name !== 'node_modules'
  let files = 0
  let bytes = 0
  const check = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (!isCode(entry.name)) continue
      if (entry.isDirectory()) await check(path)
      else if (!entry.isFile()) throw new Refusal('invalid_request', `${path} is no plain file`)
      else bytes += (await lstat(path)).size
      if (++files > max) throw new Refusal('payload_too_large', `The folder has more files than max_files (${max})`)
      if (bytes > maxBytes)
        throw new Refusal('payload_too_large', `The folder is larger than max_unpacked_bytes (${maxBytes})`)
    }
  }
  await check(from)
  if (!['index.ts', 'index.js'].some((name) => existsSync(join(from, name))))
    throw new Refusal('invalid_request', `path: ${from} holds no plugin: there is no index.ts or index.js`)
  await cp(from, to, { recursive: true, filter: (path) => path === from || isCode(basename(path)) })
}
