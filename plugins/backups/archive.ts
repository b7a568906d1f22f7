import { createHash, createHmac, hash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { Readable, Transform } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import type { ZipFile } from 'yazl'
import type { Traits } from './contents.ts'
import type { FileEntry, Head, Manifest } from './schema.ts'

/** What the key of the code of authentication is derived for. */
export const PURPOSE = 'svc-backup-1'
export const HEAD = 'backup.json'
export const MANIFEST = 'manifest.json'
export const CODE = 'manifest.hmac'
export const codeOf = (key: Uint8Array, manifest: Uint8Array): Buffer =>
  createHmac('sha256', key).update(manifest).digest()

/** An archive that is being written: files one after the other, the manifest over all of them last. */
export class ArchiveWriter {
  readonly #zip: ZipFile
  readonly #done: Promise<void>
  readonly #file: string
  readonly #files: FileEntry[] = []
  #failed: unknown

  private constructor(zip: ZipFile, file: string) {
    this.#zip = zip
    this.#file = file
    const output = createWriteStream(file, { mode: 0o600, flags: 'wx' })
    this.#done = pipeline(zip.outputStream, output)
    // Reported to the next call that adds a file or ends the archive.
    this.#done.catch((error: unknown) => {
      this.#failed = error
    })
    // A file of another length than announced, or any other failure in the library, ends only this archive.
    zip.on('error', (error: Error) => {
      this.#failed ??= error
      output.destroy(error)
    })
  }
  /** Throws when the file exists. */
  static async create(file: string): Promise<ArchiveWriter> {
    const yazl = await import('yazl')
    return new ArchiveWriter(new yazl.ZipFile(), file)
  }

  /** A file that nobody else writes. It is hashed while it is read. */
  async addFile(path: string, name: string, traits?: Traits): Promise<void> {
    const { size } = await stat(path)
    const digest = createHash('sha256')
    // Bytes flow when the archive reads them: it may be busy with the previous file.
    const hashed = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        digest.update(chunk)
        done(null, chunk)
      },
    })
    this.#zip.addReadStream(hashed, name, { size, mode: 0o100600 })
    await this.#unlessFailed(pipeline(createReadStream(path), hashed))
    this.#files.push({ name, size, sha256: digest.digest('hex'), ...toEntry(traits) })
  }
  /** The same for content already in memory, which is kept until the archive has read it. */
  async addBytes(bytes: Buffer, name: string, traits: Traits): Promise<void> {
    const source = Readable.from([bytes], { objectMode: false })
    this.#zip.addReadStream(source, name, { size: bytes.length, mode: 0o100600 })
    await this.#unlessFailed(finished(source))
    this.#note(name, bytes, traits)
  }
  addText(text: string, name: string): void {
    const bytes = Buffer.from(text)
    this.#zip.addBuffer(bytes, name, { mode: 0o100600 })
    this.#note(name, bytes)
  }

  /** Writes manifest and code, and waits until all is on disk. */
  async end(head: Head, key: Uint8Array, facts: Pick<Manifest, 'database' | 'skipped'>): Promise<Manifest> {
    this.addText(JSON.stringify(head), HEAD)
    const manifest: Manifest = { ...head, ...facts, files: this.#files }
    const bytes = Buffer.from(JSON.stringify(manifest))
    this.#zip.addBuffer(bytes, MANIFEST, { mode: 0o100600 })
    this.#zip.addBuffer(Buffer.from(`${codeOf(key, bytes).toString('hex')}\n`), CODE, {
      mode: 0o100600,
      compress: false,
    })
    this.#zip.end()
    await this.#done
    const handle = await open(this.#file, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
    return manifest
  }

  #note(name: string, bytes: Buffer, traits?: Traits): void {
    this.#files.push({ name, size: bytes.length, sha256: hash('sha256', bytes), ...toEntry(traits) })
  }
  async #unlessFailed(read: Promise<void>): Promise<void> {
    // A full disk ends the output while the input waits for it.
    await Promise.race([read, this.#done])
    if (this.#failed !== undefined) throw this.#failed
  }
}

function toEntry(traits: Traits | undefined): Pick<FileEntry, 'executable' | 'mtime_ms'> {
  return { ...(traits?.executable && { executable: true }), ...(traits && { mtime_ms: traits.mtimeMs }) }
}
