import { hash } from 'node:crypto'
import { lstat, readdir, readFile, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { checkDistinctNames, checkFileName, hashOfFiles, readArchive } from 'svc/internal'
import type { ArchivedFile } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import type { Settings } from '../config.ts'
import type { Hubs } from '../hub/open.ts'
import type { Translation } from '../hub/tool-names.ts'
import type { Warning } from './scan.ts'

/** The files of a skill from elsewhere, in memory: nothing of it is on disk yet. */
export interface Bundle {
  readonly files: readonly ArchivedFile[]
  /** Where it is from, for records. */
  readonly source: string
  /** Of the archive, or of names and contents of a folder; hexadecimal digits. */
  readonly sha256: string
  /** As it was fetched; `undefined` of a folder. */
  readonly archive: Uint8Array | undefined
  /** What a skill of a hub was made of; `from` is `undefined` for one in our own format. */
  readonly conversion?: {
    readonly from: 'SKILL.md' | undefined
    readonly translations: readonly Translation[]
    readonly warnings: readonly Warning[]
  }
}
export interface BundleDeps {
  readonly fetch: Fetch
  readonly settings: Settings
  readonly hubs: () => Promise<Hubs>
}

/**
 * Reads a folder, an archive, or what an https address answers. Throws `forbidden` for a kind of source that the
 * configuration does not permit, `invalid_request` and `not_found` for what is no skill, `payload_too_large`.
 */
export async function readBundle(source: string, { fetch, settings, hubs }: BundleDeps): Promise<Bundle> {
  if (/^(?:hub|marketplace):/.test(source)) {
    permit('hub', settings)
    const { readHubBundle } = await import('./hub-bundle.ts')
    return await readHubBundle(source, await hubs(), settings)
  }
  if (/^https?:/i.test(source)) {
    permit('url', settings)
    const url = toAddress(source)
    return await fromArchive(await download(fetch, url, settings), `${url.origin}${url.pathname}`, settings)
  }
  if (!source.startsWith('/'))
    throw new Refusal('invalid_request', 'source: must be an absolute path, an https address, or of a hub as hub:slug')
  const facts = await stat(source).catch(() => undefined /* told below */)
  if (!facts) throw new Refusal('not_found', `${source} does not exist on the machine of the daemon`)
  if (facts.isDirectory()) {
    permit('folder', settings)
    return await fromFolder(source, settings)
  }
  permit('archive', settings)
  if (facts.size > settings.max_archive_bytes) throw tooLarge(source, settings)
  return await fromArchive(await readFile(source), source, settings)
}

function permit(kind: 'url' | 'folder' | 'archive' | 'hub', { sources }: Settings): void {
  if (!sources.includes(kind))
    throw new Refusal('forbidden', `plugins.skills.sources does not permit the source "${kind}"`)
}
function toAddress(text: string): URL {
  const url = URL.parse(text)
  if (url?.protocol === 'https:' && url.username === '' && url.password === '') return url
  throw new Refusal('invalid_request', 'source: must be an https address without a user name')
}
const tooLarge = (what: string, { max_archive_bytes: max }: Settings): Refusal =>
  new Refusal('payload_too_large', `${what} is larger than plugins.skills.max_archive_bytes (${max})`)

async function download(fetch: Fetch, url: URL, settings: Settings): Promise<Uint8Array> {
  try {
    const response = await fetch(url, {
      maxBytes: settings.max_archive_bytes,
      check(each) {
        if (each.protocol !== 'https:') throw new Refusal('forbidden', `${url.host} leads to an address without https`)
      },
    })
    if (!response.ok) throw new Refusal('service_unavailable', `${url.host} answered ${response.status}`)
    return await response.bytes()
  } catch (error) {
    if (error instanceof UpstreamFailure) throw new Refusal('service_unavailable', error.message, { cause: error })
    throw error
  }
}

async function fromArchive(archive: Uint8Array, source: string, settings: Settings): Promise<Bundle> {
  // One file that is no archive may be a SKILL.md by itself.
  const isText = archive[0] === 0x2d && archive[1] === 0x2d
  const files = isText ? [{ name: 'SKILL.md', bytes: Buffer.from(archive) }] : await readArchive(archive, settings)
  return { files: checkFiles(files), source, sha256: hash('sha256', archive), archive }
}

async function fromFolder(folder: string, settings: Settings): Promise<Bundle> {
  const files: ArchivedFile[] = []
  let bytes = 0
  const read = async (at: string): Promise<void> => {
    for (const entry of await readdir(at, { withFileTypes: true })) {
      if (entry.name.startsWith('.')) continue
      const path = join(at, entry.name)
      if (entry.isDirectory()) {
        await read(path)
        continue
      }
      if (!entry.isFile()) throw new Refusal('invalid_request', `${path} is no plain file`)
      bytes += (await lstat(path)).size
      if (files.length >= settings.max_files)
        throw new Refusal('payload_too_large', `The folder has more files than max_files (${settings.max_files})`)
      if (bytes > settings.max_unpacked_bytes)
        throw new Refusal(
          'payload_too_large',
          `The folder is larger than max_unpacked_bytes (${settings.max_unpacked_bytes})`,
        )
      files.push({ name: relative(folder, path).replaceAll('\\', '/'), bytes: await readFile(path) })
    }
  }
  await read(folder)
  const sorted = checkFiles(files.toSorted((one, other) => (one.name < other.name ? -1 : 1)))
  return { files: sorted, source: folder, sha256: hashOfFiles(sorted), archive: undefined }
}

/** Without hidden ones. Throws `invalid_request` for a name that leads out of the folder, and for two that differ by case. */
export function checkFiles(files: readonly ArchivedFile[]): readonly ArchivedFile[] {
  const shown = files.filter(isShown).map(checked)
  checkDistinctNames(
    shown.map(({ name }) => name),
    'The skill',
  )
  return shown
}
const isShown = ({ name }: ArchivedFile): boolean => !/(?:^|\/)\./.test(name)
function checked(file: ArchivedFile): ArchivedFile {
  checkFileName(file.name)
  return file
}
