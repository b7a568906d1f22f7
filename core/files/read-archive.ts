import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { ReadEntry } from 'tar'
import type { Entry, ZipFile } from 'yauzl'
import { Refusal } from '../errors/error.ts'
import { checkDistinctNames } from './distinct-names.ts'

export interface ArchiveLimits {
  readonly max_unpacked_bytes: number
  readonly max_files: number
}
export interface ArchivedFile {
  /** With `/` between its parts. */
  readonly name: string
  readonly bytes: Buffer
}

/**
 * The files of a .tgz, .tar or .zip, in memory, without the one folder that holds them all. Throws `invalid_request`
 * for anything but plain files and folders, for a name that leads out of the folder, and for names that differ by case
 * only, `payload_too_large` beyond a limit. `claim` is told how many bytes are unpacked, and throws if they are too many.
 */
export async function readArchive(
  archive: Uint8Array,
  limits: ArchiveLimits,
  claim: (bytes: number) => void = () => undefined,
): Promise<readonly ArchivedFile[]> {
  const files = withoutTop(
    isZip(archive) ? await readZip(archive, limits, claim) : await readTarball(archive, limits, claim),
  )
  if (files.length === 0) throw new Refusal('invalid_request', 'The archive holds no files')
  checkDistinctNames(
    files.map(({ name }) => name),
    'The archive',
  )
  return files
}

const isGzip = ([first, second]: Uint8Array): boolean => first === 0x1f && second === 0x8b
const isZip = ([first, second]: Uint8Array): boolean => first === 0x50 && second === 0x4b

async function readTarball(
  archive: Uint8Array,
  limits: ArchiveLimits,
  claim: (bytes: number) => void,
): Promise<readonly ArchivedFile[]> {
  const bytes = isGzip(archive) ? await gunzipWithin(archive, limits) : archive
  // The parser would unpack it once more, at once and without a limit.
  if (isGzip(bytes)) throw new Refusal('invalid_request', 'The archive is damaged: it is compressed twice')
  // What follows the compressed data of an archive was fetched, but is not unpacked.
  claim(Math.max(archive.length, bytes.length))
  return await readTar(bytes, limits)
}

async function gunzipWithin(archive: Uint8Array, { max_unpacked_bytes: max }: ArchiveLimits): Promise<Uint8Array> {
  try {
    return await promisify(gunzip)(archive, { maxOutputLength: max })
  } catch (cause) {
    const isTooLarge = cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE'
    throw isTooLarge
      ? new Refusal('payload_too_large', `The archive unpacks to more than max_unpacked_bytes (${max})`, { cause })
      : new Refusal('invalid_request', 'The archive is damaged: it is no gzip file', { cause })
  }
}

async function readTar(bytes: Uint8Array, limits: ArchiveLimits): Promise<readonly ArchivedFile[]> {
  const { Parser } = await import('tar')
  const files: ArchivedFile[] = []
  return await new Promise((resolve, reject) => {
    let total = 0
    const refuse = (problem: Refusal): void => {
      parser.abort(problem)
      reject(problem)
    }
    const parser = new Parser({
      strict: true,
      zstd: false,
      onReadEntry(entry) {
        total += entry.size
        const problem = typeProblem(entry) ?? problemOf(entry.path, { count: files.length + 1, total }, limits)
        if (problem) return refuse(problem)
        if (entry.type === 'Directory') return void entry.resume()
        const chunks: Buffer[] = []
        entry.on('data', (chunk: Buffer) => void chunks.push(chunk))
        entry.on('end', () => void files.push({ name: entry.path, bytes: Buffer.concat(chunks) }))
      },
    })
    parser.on('error', (cause: unknown) => {
      reject(
        cause instanceof Refusal
          ? cause
          : new Refusal('invalid_request', 'The archive is damaged: it is no tar file', { cause }),
      )
    })
    parser.on('end', () => resolve(files))
    parser.end(Buffer.from(bytes))
  })
}
function typeProblem({ path, type }: ReadEntry): Refusal | undefined {
  return type === 'File' || type === 'OldFile' || type === 'ContiguousFile' || type === 'Directory'
    ? undefined
    : new Refusal('invalid_request', `The archive has "${path}", which is no plain file but a ${type}`)
}

async function readZip(
  archive: Uint8Array,
  limits: ArchiveLimits,
  claim: (bytes: number) => void,
): Promise<readonly ArchivedFile[]> {
  const { fromBufferPromise } = await import('yauzl')
  const files: ArchivedFile[] = []
  try {
    const zip = await fromBufferPromise(Buffer.from(archive), { lazyEntries: true, strictFileNames: true })
    let total = 0
    for await (const entry of zip.eachEntry()) {
      total += entry.uncompressedSize
      const problem = zipTypeProblem(entry) ?? problemOf(entry.fileName, { count: files.length + 1, total }, limits)
      if (problem) throw problem
      if (!entry.fileName.endsWith('/')) files.push({ name: entry.fileName, bytes: await readEntry(zip, entry) })
    }
    claim(Math.max(archive.length, total))
  } catch (cause) {
    if (cause instanceof Refusal) throw cause
    const why = cause instanceof Error ? cause.message : 'it cannot be read'
    throw new Refusal('invalid_request', `The archive is damaged: ${why}`, { cause })
  }
  return files
}
const TYPE = 0o170000
const PLAIN = 0o100000
const FOLDER = 0o040000
function zipTypeProblem({ fileName, externalFileAttributes, generalPurposeBitFlag }: Entry): Refusal | undefined {
  if ((generalPurposeBitFlag & 1) !== 0)
    return new Refusal('invalid_request', `The archive has "${fileName}", which is encrypted`)
  const type = (externalFileAttributes >>> 16) & TYPE
  return type === 0 || type === PLAIN || type === FOLDER
    ? undefined
    : new Refusal('invalid_request', `The archive has "${fileName}", which is no plain file`)
}
/** Not more bytes than the table of contents says: the reader holds that. */
async function readEntry(zip: ZipFile, entry: Entry): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Why an entry must not be unpacked. */
function problemOf(
  path: string,
  { count, total }: { readonly count: number; readonly total: number },
  limits: ArchiveLimits,
): Refusal | undefined {
  if (/^[/\\]|^[a-z]:/i.test(path) || path.split(/[/\\]/).includes('..'))
    return new Refusal('invalid_request', `The archive has "${path}", which leads out of its folder`)
  if (count > limits.max_files)
    return new Refusal('payload_too_large', `The archive has more files than max_files (${limits.max_files})`)
  if (total > limits.max_unpacked_bytes)
    return new Refusal(
      'payload_too_large',
      `The archive unpacks to more than max_unpacked_bytes (${limits.max_unpacked_bytes})`,
    )
  return undefined
}

function withoutTop(files: readonly ArchivedFile[]): readonly ArchivedFile[] {
  const clean = files.map(({ name, bytes }) => ({ name: name.replace(/^(?:\.\/)+/, ''), bytes }))
  const tops = new Set(clean.map(({ name }) => name.split('/', 1)[0]))
  const hasTop = tops.size === 1 && clean.every(({ name }) => name.includes('/'))
  return hasTop ? clean.map(({ name, bytes }) => ({ name: name.slice(name.indexOf('/') + 1), bytes })) : clean
}
