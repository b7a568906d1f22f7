import { messageOf } from 'svc/internal'
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Entry, ZipFile } from 'yauzl'
import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { CODE, codeOf, HEAD, MANIFEST } from './archive.ts'
import { Head, Manifest } from './schema.ts'
import type { FileEntry } from './schema.ts'

export interface ArchiveLimits {
  readonly maxFiles: number
  readonly maxBytes: number
}
/** Of a manifest: about two hundred bytes for each file. */
const MANIFEST_BYTES = 268_435_456
const SMALL_BYTES = 65_536
const PLAIN = 0o100000
const TYPE = 0o170000

const refuse = (why: string, cause?: unknown): never => {
  throw new Refusal('invalid_request', `This archive is refused: ${why}`, { cause })
}

/**
 * An archive from outside. Nothing is used before `check` has read all of it: its table of contents is not trusted.
 * Throws `invalid_request` with the reason. Dispose it.
 */
export class OpenedArchive implements Disposable {
  readonly #zip: ZipFile
  readonly #entries: ReadonlyMap<string, Entry>
  private constructor(zip: ZipFile, entries: ReadonlyMap<string, Entry>) {
    this.#zip = zip
    this.#entries = entries
  }

  static async open(file: string, limits: ArchiveLimits): Promise<OpenedArchive> {
    const { openPromise } = await import('yauzl')
    let zip: ZipFile
    try {
      zip = await openPromise(file, {
        lazyEntries: true,
        autoClose: false,
        strictFileNames: true,
        validateEntrySizes: true,
        decodeStrings: true,
      })
    } catch (error) {
      if (error instanceof Error && 'code' in error) throw error
      return refuse(`it is no zip file (${messageOf(error)})`, error)
    }
    try {
      if (zip.entryCount > limits.maxFiles + 3)
        refuse(`it has ${zip.entryCount} files, and ${limits.maxFiles} are allowed`)
      return new OpenedArchive(zip, await readEntries(zip, limits))
    } catch (error) {
      zip.close()
      throw error
    }
  }

  [Symbol.dispose](): void {
    this.#zip.close()
  }

  /** Who made it and when, as the archive claims. */
  async head(): Promise<Head> {
    return parsed(Head, await this.#small(HEAD, SMALL_BYTES), HEAD)
  }
  has(name: string): boolean {
    return this.#entries.has(name)
  }
  async text(name: string): Promise<string> {
    return (await this.#small(name, SMALL_BYTES)).toString('utf8')
  }

  /**
   * Reads and verifies all of it: made by a holder of the key, every file as in the manifest, and no other. Writes
   * nothing.
   */
  async check(key: Uint8Array, signal?: AbortSignal): Promise<Manifest> {
    const [bytes, code] = [
      await this.#small(MANIFEST, MANIFEST_BYTES),
      (await this.#small(CODE, 128)).toString('latin1').trim(),
    ]
    const given = Buffer.from(/^[0-9a-f]{64}$/.test(code) ? code : '', 'hex')
    const expected = codeOf(key, bytes)
    if (given.length !== expected.length || !timingSafeEqual(given, expected))
      refuse(
        'its manifest was not signed with the key of this vault: it was made by another installation, or was ' +
          'changed since. In another home, restore an archive made with --passphrase, or copy vault.key there first',
      )
    const manifest = parsed(Manifest, bytes, MANIFEST)
    const names = new Set(manifest.files.map(({ name }) => name))
    if (names.size !== manifest.files.length) refuse('its manifest names a file twice')
    for (const name of this.#entries.keys())
      if (name !== MANIFEST && name !== CODE && !names.has(name))
        refuse(`it holds "${name}", which its manifest does not know`)
    for (const file of manifest.files) {
      signal?.throwIfAborted()
      for await (const _ of this.read(file)) signal?.throwIfAborted()
    }
    return manifest
  }

  /** The content of a file; throws at its end when it differs from the manifest. */
  async *read(file: FileEntry): AsyncGenerator<Buffer> {
    const entry = this.#entries.get(file.name)
    if (!entry) return refuse(`"${file.name}" is missing`)
    if (entry.uncompressedSize !== file.size) refuse(`"${file.name}" differs in size from its manifest`)
    const digest = createHash('sha256')
    let size = 0
    try {
      for await (const chunk of await this.#zip.openReadStreamPromise(entry)) {
        if (!Buffer.isBuffer(chunk)) throw new Error('a stream of bytes gave something else')
        size += chunk.length
        if (size > file.size) refuse(`"${file.name}" is larger than in its manifest`)
        digest.update(chunk)
        yield chunk
      }
    } catch (error) {
      if (error instanceof Refusal) throw error
      refuse(`"${file.name}" cannot be read (${messageOf(error)})`, error)
    }
    if (size !== file.size || digest.digest('hex') !== file.sha256) refuse(`"${file.name}" differs from its manifest`)
  }

  async #small(name: string, maxBytes: number): Promise<Buffer> {
    const entry = this.#entries.get(name) ?? refuse(`it has no ${name}`)
    if (entry.uncompressedSize > maxBytes) refuse(`${name} is too large`)
    const chunks: Buffer[] = []
    let size = 0
    try {
      for await (const chunk of await this.#zip.openReadStreamPromise(entry)) {
        if (!Buffer.isBuffer(chunk) || (size += chunk.length) > maxBytes) throw new Error('too large')
        chunks.push(chunk)
      }
    } catch (error) {
      refuse(`${name} cannot be read (${messageOf(error)})`, error)
    }
    return Buffer.concat(chunks)
  }
}

/** The table of contents, checked separately: an entry that our archives never have ends the reading. */
async function readEntries(zip: ZipFile, { maxFiles, maxBytes }: ArchiveLimits): Promise<ReadonlyMap<string, Entry>> {
  const entries = new Map<string, Entry>()
  let bytes = 0
  try {
    for await (const entry of zip.eachEntry()) {
      const { fileName: name } = entry
      const mode = entry.externalFileAttributes >>> 16
      if (entries.size > maxFiles + 3) refuse(`it has more files than the ${maxFiles} that are allowed`)
      if (name.length > 1_100 || name.endsWith('/')) refuse(`"${name.slice(0, 100)}" is not the name of a file`)
      if ((mode & TYPE) !== PLAIN) refuse(`"${name}" is a link, a device or another special file`)
      if (entry.isEncrypted() || !entry.canDecodeFileData())
        refuse(`"${name}" is packed in a way that is not supported`)
      if (entries.has(name)) refuse(`"${name}" is in it twice`)
      if ((bytes += entry.uncompressedSize) > maxBytes)
        refuse(`it unpacks to more than the ${maxBytes} bytes that are allowed`)
      entries.set(name, entry)
    }
  } catch (error) {
    if (error instanceof Refusal) throw error
    refuse(messageOf(error), error)
  }
  return entries
}

function parsed<S extends v.GenericSchema<unknown, unknown>>(schema: S, bytes: Buffer, name: string): v.InferOutput<S> {
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), bytes.toString('utf8'))
  return result.success
    ? (result.output as v.InferOutput<S>)
    : refuse(`${name} is invalid (${result.issues[0].message})`)
}
