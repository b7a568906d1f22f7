import { constants } from 'node:fs'
import { lstat, open, opendir, realpath } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { isAbsolute, join, sep } from 'node:path'
import { createMask, messageOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { ReadLimits } from './limits.ts'

/** Without O_NONBLOCK a pipe would hold the reader for ever. */
const AS_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const AS_FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
/** The number of an open folder is a link to it. */
const AS_ROOT = constants.O_RDONLY | constants.O_DIRECTORY
const CHUNK_BYTES = 1_048_576
/** Problems that are kept. */
const MAX_PROBLEMS = 1_000

export interface Entry {
  readonly name: string
  readonly isFolder: boolean
}
/** Something that was not read, and why. */
export interface ReadProblem {
  readonly name: string
  readonly reason: string
}

/**
 * The folder of another system, for reading. No link is followed, not even one that is put there meanwhile; a file with
 * several names, a device, a pipe and a file of another owner than the folder's are left out. Nothing in it is run.
 */
export class SourceFolder implements AsyncDisposable {
  /** Absolute and real. */
  readonly path: string
  /** Of texts that people see: it knows the secrets of what was read. */
  readonly mask = createMask()
  readonly #root: FileHandle
  readonly #owner: number
  readonly #limits: ReadLimits
  readonly #problems: ReadProblem[] = []
  readonly #problemKeys = new Set<string>()
  #entries = 0
  private constructor(path: string, root: FileHandle, owner: number, limits: ReadLimits) {
    this.path = path
    this.#root = root
    this.#owner = owner
    this.#limits = limits
  }

  /**
   * Throws `invalid_request` for a path that is not absolute or no folder, and `forbidden` for a link, a folder of
   * another owner, and one that has to do with a `denied` one.
   */
  static async open(
    path: string,
    denied: readonly string[],
    limits: ReadLimits,
    field = 'path',
  ): Promise<SourceFolder> {
    if (!isAbsolute(path) || path.includes('\0'))
      throw new Refusal('invalid_request', `${field}: ${path} is not absolute`)
    const stat = await lstat(path).catch((cause: unknown) => {
      throw new Refusal('invalid_request', `${field}: there is no folder ${path} that the daemon can read`, { cause })
    })
    if (stat.isSymbolicLink())
      throw new Refusal('forbidden', `${field}: ${path} is a link: name the folder it leads to (${await target(path)})`)
    if (!stat.isDirectory()) throw new Refusal('invalid_request', `${field}: ${path} is not a folder`)
    const real = await realpath(path)
    for (const folder of denied) {
      const other = await realpath(folder).catch(() => folder)
      if (real === other || real.startsWith(other + sep) || other.startsWith(real === sep ? sep : real + sep))
        throw new Refusal('forbidden', `${field}: ${path} is, holds or lies in the home of this daemon`)
    }
    const own = process.getuid?.()
    if (own !== undefined && stat.uid !== own && !limits.foreignOwner)
      throw new Refusal(
        'forbidden',
        `${field}: ${path} belongs to another user of this machine (${stat.uid}). If it is yours, make it that of the ` +
          'daemon with chown, or set plugins.migrate.foreign_owner in config.toml',
      )
    const root = await open(real, AS_FOLDER)
    // All of this was about the folder of before, which a link above it may have replaced.
    const held = await root.stat()
    if (held.ino === stat.ino && held.dev === stat.dev) return new SourceFolder(real, root, stat.uid, limits)
    await root.close()
    throw new Refusal('forbidden', `${field}: ${path} was replaced while it was looked at`)
  }

  /** What was left out so far. */
  get problems(): readonly ReadProblem[] {
    return this.#problems
  }
  skip(name: string, reason: string): void {
    const known = this.#problemKeys
    if (known.size > MAX_PROBLEMS || known.has(`${name}\0${reason}`)) return
    known.add(`${name}\0${reason}`)
    const isLast = known.size > MAX_PROBLEMS
    this.#problems.push(
      isLast ? { name: this.path, reason: 'more than these stay behind, and are not named' } : { name, reason },
    )
  }

  /** Entries by name; empty when there is no such folder. `folder` has `/` between its parts, empty is the root. */
  async list(folder: string): Promise<readonly Entry[]> {
    const held = await this.#openFolder(folder)
    if (!held) return []
    try {
      const found: Entry[] = []
      for await (const entry of await opendir(pathOf(held, this.#fallback(folder)))) {
        if (++this.#entries > this.#limits.maxEntries)
          throw new Refusal(
            'payload_too_large',
            `${this.path} has more than ${this.#limits.maxEntries} files: raise plugins.migrate.max_entries`,
          )
        const name = folder === '' ? entry.name : `${folder}/${entry.name}`
        if (entry.isSymbolicLink()) this.skip(name, 'it is a link, and links are not followed')
        else if (entry.isDirectory() || entry.isFile()) found.push({ name: entry.name, isFolder: entry.isDirectory() })
        else this.skip(name, 'it is neither a file nor a folder')
      }
      return found.toSorted((one, other) => (one.name < other.name ? -1 : 1))
    } finally {
      await held.close()
    }
  }
  /** Whether it can be read; what is there and cannot is a problem. */
  async has(name: string): Promise<boolean> {
    const handle = await this.#openFile(name)
    await handle?.close()
    return handle !== undefined
  }
  async hasFolder(name: string): Promise<boolean> {
    const handle = await this.#openFolder(name)
    await handle?.close()
    return handle !== undefined
  }
  /** UTF-8 without a byte order mark; `undefined` when there is none, or with a problem when it is left out. */
  async text(name: string): Promise<string | undefined> {
    const bytes = await this.bytes(name)
    return bytes && new TextDecoder().decode(bytes)
  }
  async bytes(name: string): Promise<Uint8Array | undefined> {
    const handle = await this.#openFile(name)
    if (!handle) return undefined
    try {
      const max = this.#limits.maxFileBytes
      const { size } = await handle.stat()
      if (size > max) return void this.skip(name, tooLarge(size, max, 'max_file_bytes'))
      const bytes = Buffer.alloc(size)
      let read = 0
      while (read < size) {
        const { bytesRead } = await handle.read(bytes, read, size - read, read)
        if (bytesRead === 0) break
        read += bytesRead
      }
      return bytes.subarray(0, read)
    } finally {
      await handle.close()
    }
  }
  /** Copies a file; `false` when there is none, or with a problem when it is left out. */
  async copy(name: string, to: string): Promise<boolean> {
    const handle = await this.#openFile(name)
    if (!handle) return false
    try {
      const max = this.#limits.maxDatabaseBytes
      const { size } = await handle.stat()
      if (size > max) {
        this.skip(name, tooLarge(size, max, 'max_database_bytes'))
        return false
      }
      await using target = await open(to, 'wx', 0o600)
      const [chunk, empty] = [Buffer.alloc(CHUNK_BYTES), Buffer.alloc(CHUNK_BYTES)]
      let at = 0
      while (at <= max) {
        const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES, at)
        if (bytesRead === 0) break
        // A file that is large and almost empty takes no more room here than there.
        if (chunk.compare(empty, 0, bytesRead, 0, bytesRead) !== 0) await target.write(chunk, 0, bytesRead, at)
        at += bytesRead
      }
      await target.truncate(at)
      return true
    } finally {
      await handle.close()
    }
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.#root.close()
  }

  async #openFile(name: string): Promise<FileHandle | undefined> {
    const at = name.lastIndexOf('/')
    const folder = at < 0 ? '' : name.slice(0, at)
    const held = await this.#openFolder(folder)
    if (!held) return undefined
    let handle: FileHandle | undefined
    try {
      handle = await open(join(pathOf(held, this.#fallback(folder)), name.slice(at + 1)), AS_FILE)
      const stat = await handle.stat()
      const reason = !stat.isFile()
        ? 'it is not a plain file'
        : stat.nlink > 1
          ? 'the file has several names, one of which may lie elsewhere'
          : stat.uid === this.#owner
            ? undefined
            : 'it belongs to another user than the folder'
      if (reason === undefined) return handle
      this.skip(name, reason)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') this.skip(name, reasonOf(error))
    } finally {
      await held.close()
    }
    await handle?.close()
    return undefined
  }
  /** `undefined` when there is none, or a link is on the way. */
  async #openFolder(name: string): Promise<FileHandle | undefined> {
    let held = await open(pathOf(this.#root, this.path), AS_ROOT).catch(() => undefined)
    let seen = ''
    for (const part of name === '' ? [] : name.split('/')) {
      if (!held) return undefined
      const above: FileHandle = held
      try {
        if (part === '' || part === '.' || part === '..' || part.includes('\0')) return undefined
        held = await open(join(pathOf(above, this.#fallback(seen)), part), AS_FOLDER)
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') this.skip(name, reasonOf(error))
        return undefined
      } finally {
        await above.close()
      }
      seen = seen === '' ? part : `${seen}/${part}`
    }
    return held
  }
  #fallback(folder: string): string {
    return join(this.path, folder)
  }
}

/** Linux reaches what is in an open folder through its number, whatever its name leads to by then. */
const holds = process.platform === 'linux'
const pathOf = (handle: FileHandle, path: string): string => (holds ? `/proc/self/fd/${handle.fd}` : path)
const target = (path: string): Promise<string> => realpath(path).catch(() => 'nothing')
const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)
const tooLarge = (size: number, max: number, key: string): string =>
  `it has ${size} bytes, more than the ${max} of plugins.migrate.${key}`
function reasonOf(error: unknown): string {
  const code = codeOf(error)
  if (code === 'ELOOP' || code === 'ENOTDIR') return 'it is a link, or lies behind one, and links are not followed'
  if (code === 'EACCES' || code === 'EPERM') return 'the daemon may not read it'
  return messageOf(error)
}
