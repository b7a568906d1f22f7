import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { ReadEntry } from 'tar'
import { confine } from 'svc/internal'
import { Refusal } from 'svc/sdk'

export interface ArchiveLimits {
  readonly max_unpacked_bytes: number
  readonly max_files: number
}
interface UnpackedFile {
  readonly name: string
  readonly bytes: Buffer
}

/**
 * Unpacks a .tgz or .tar into an empty folder, without the one folder that npm puts all files into. Throws
 * `invalid_request` for anything but plain files and folders, for a name that leads out of the folder, and beyond a
 * limit; what was written by then is for the caller to remove. `claim` is told the bytes before any is written, and
 * throws if they are too many.
 */
export async function unpack(
  archive: Uint8Array,
  folder: string,
  limits: ArchiveLimits,
  claim: (bytes: number) => void = () => undefined,
): Promise<void> {
  const inflated = await inflate(archive, limits)
  // What follows the compressed data of an archive was fetched, but is not unpacked.
  claim(Math.max(archive.length, inflated.length))
  const files = withoutTop(await readFiles(inflated, limits))
  if (files.length === 0) throw new Refusal('invalid_request', 'The archive holds no files')
  for (const { name, bytes } of files) {
    // Checked against the disk for each file: nothing in the archive can make a link that a later file goes through.
    const path = await confine(folder, name)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(path, bytes, { flag: 'wx', mode: 0o600 }).catch((cause: unknown) => {
      throw new Refusal('invalid_request', `The archive has the file "${name}" twice, or as file and folder`, { cause })
    })
  }
}

const isGzip = ([first, second]: Uint8Array): boolean => first === 0x1f && second === 0x8b

async function inflate(archive: Uint8Array, limits: ArchiveLimits): Promise<Uint8Array> {
  const bytes = isGzip(archive) ? await gunzipWithin(archive, limits) : archive
  // The parser would unpack it once more, at once and without a limit.
  if (isGzip(bytes)) throw new Refusal('invalid_request', 'The archive is damaged: it is compressed twice')
  return bytes
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

async function readFiles(bytes: Uint8Array, limits: ArchiveLimits): Promise<readonly UnpackedFile[]> {
  const { Parser } = await import('tar')
  const files: UnpackedFile[] = []
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
        const problem = problemOf(entry, files.length + 1, total, limits)
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

/** Why an entry must not be unpacked. */
function problemOf(entry: ReadEntry, count: number, total: number, limits: ArchiveLimits): Refusal | undefined {
  const { path, type } = entry
  if (type !== 'File' && type !== 'OldFile' && type !== 'ContiguousFile' && type !== 'Directory')
    return new Refusal('invalid_request', `The archive has "${path}", which is no plain file but a ${type}`)
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

function withoutTop(files: readonly UnpackedFile[]): readonly UnpackedFile[] {
  const clean = files.map(({ name, bytes }) => ({ name: name.replace(/^(?:\.\/)+/, ''), bytes }))
  const tops = new Set(clean.map(({ name }) => name.split('/', 1)[0]))
  const hasTop = tops.size === 1 && clean.every(({ name }) => name.includes('/'))
  return hasTop ? clean.map(({ name, bytes }) => ({ name: name.slice(name.indexOf('/') + 1), bytes })) : clean
}
