import { createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { chmodSync, lstatSync, readFileSync } from 'node:fs'
import { link, mkdir, open, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { ConsolaInstance } from 'consola'
import { codeOf } from './failure.ts'
import { syncFolder } from './sqlite-file.ts'

const KEY_BYTES = 32

/**
 * Where the key of the vault comes from: 32 random bytes as hex. One of the home has mode 0600, belongs to the user of
 * the daemon, and is made by the first write; if others may read it, its mode is corrected with a warning. A file that
 * the operator names is his own affair: a mounted secret belongs to root and may be a link.
 */
export interface VaultKeySource {
  readonly file: string
  /** The operator named the file: it must exist, and is never made or changed. */
  readonly isNamed?: boolean
  /** The key itself, instead of a file. */
  readonly given?: string
}

export function vaultKeySource(config: {
  readonly home_dir: string
  readonly vault_key?: string | undefined
  readonly vault_key_file?: string | undefined
}): VaultKeySource {
  const { home_dir: home, vault_key: given, vault_key_file: file } = config
  if (given !== undefined) return { file: join(home, 'vault.key'), given }
  return file === undefined ? { file: join(home, 'vault.key') } : { file: resolve(home, file), isNamed: true }
}

/** For messages. */
export function describeKey({ file, given }: VaultKeySource): string {
  return given === undefined
    ? `the key file ${file}`
    : 'the key that was given (SVC_VAULT_KEY, vault_key or standard input)'
}

/** Synchronous: it reads a few bytes at every start. */
export function readKey(source: VaultKeySource, log: ConsolaInstance | undefined): KeyObject | undefined {
  const { file, given } = source
  if (given !== undefined) return toKey(Buffer.from(given), source)
  if (source.isNamed) return toKey(readNamed(file), source)
  return readOwnFile(source, log)
}
function readNamed(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const code = codeOf(error)
    const advice =
      code === 'ENOENT'
        ? 'there is no such file. Mount the secret there, or correct vault_key_file; a new key is 64 hex digits ' +
          '(`openssl rand -hex 32`), and the daemons on a database have one'
        : code === 'EACCES'
          ? 'this user may not read it. Grant it the right, or run the daemon as another user'
          : 'see that it is a file with 64 hex digits'
    throw new Error(`vault_key_file: ${file} cannot be read (${code}): ${advice}`, { cause: error })
  }
}
function readOwnFile(source: VaultKeySource, log: ConsolaInstance | undefined): KeyObject | undefined {
  const { file } = source
  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (!stat) return undefined
  if (!stat.isFile()) throw new Error(`the vault's key file ${file} is not a plain file`)
  if (process.getuid && stat.uid !== process.getuid())
    throw new Error(`the vault's key file ${file} belongs to another user (${stat.uid})`)
  if ((stat.mode & 0o077) !== 0) {
    chmodSync(file, 0o600)
    log?.warn(
      'the key file of the vault could be read by others; its mode is 0600 now. ' +
        'If anyone else uses this machine, enter the secrets again with a new key',
      { file, mode: (stat.mode & 0o777).toString(8) },
    )
  }
  return toKey(readFileSync(file), source)
}

/** Overwrites the text. */
function toKey(text: Buffer, source: VaultKeySource): KeyObject {
  const bytes = Buffer.from(text.toString('latin1').trim(), 'hex')
  text.fill(0)
  try {
    if (bytes.length !== KEY_BYTES)
      throw new Error(
        `the vault's key, ${describeKey(source)}, is damaged: it must be ${KEY_BYTES * 2} hex digits. ` +
          'Put it back from a copy',
      )
    return createSecretKey(bytes)
  } finally {
    bytes.fill(0)
  }
}

/** Makes the key file; one that was made meanwhile stays. Not for a key that was given. */
export async function makeKey(source: VaultKeySource, log: ConsolaInstance | undefined): Promise<KeyObject> {
  const { file } = source
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const bytes = randomBytes(KEY_BYTES)
  const text = Buffer.from(`${bytes.toString('hex')}\n`, 'latin1')
  const draft = `${file}.${randomUUID()}.new`
  try {
    const handle = await open(draft, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    // Unlike a rename, a link never replaces a key that another write has just made.
    try {
      await link(draft, file)
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
    syncFolder(dirname(file))
  } finally {
    await rm(draft, { force: true })
    bytes.fill(0)
    text.fill(0)
  }
  const key = readKey(source, log)
  if (!key) throw new Error(`the vault's key file ${file} could not be made`)
  return key
}
