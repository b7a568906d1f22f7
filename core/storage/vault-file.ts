import { createCipheriv, createDecipheriv, createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { chmodSync, lstatSync, readFileSync } from 'node:fs'
import { link, mkdir, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { ConsolaInstance } from 'consola'
import type { Database } from './database.ts'
import { codeOf } from './failure.ts'
import { syncFolder } from './sqlite-file.ts'
import { SecretBytes } from './secret-bytes.ts'
import type { Vault } from './vault.ts'

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
interface Sealed {
  readonly nonce: Uint8Array
  readonly sealed: Uint8Array
}

export interface VaultFile {
  /** The secrets of one plugin. */
  forPlugin(name: string): Vault
}

/**
 * Secrets in the database, encrypted with a key outside it: `keyFile` holds 32 random bytes as hex, has mode 0600, and
 * is created by the first write. If others may read it, its mode is corrected with a warning; if it is missing or
 * damaged while secrets exist, that is an error.
 */
export async function openVault(
  database: Pick<Database, 'sql' | 'scrub'>,
  keyFile: string,
  log?: ConsolaInstance,
): Promise<VaultFile> {
  const { sql } = database
  let key: KeyObject | undefined
  let making: Promise<KeyObject> | undefined
  async function loadKey(make: boolean): Promise<KeyObject> {
    key ??= readKey(keyFile, log)
    if (key) return key
    const kept = await sql.one<{ count: number }>`SELECT count(*) AS count FROM core_vault`
    // Another first write may have made the key, and stored its secret, before the secrets were counted.
    key ??= readKey(keyFile, log)
    if (key) return key
    if (!make || (kept && kept.count > 0))
      throw new Error(
        `the vault holds ${kept?.count ?? 0} secrets, but its key file ${keyFile} is gone: ` +
          'put it back, or remove the secrets and enter them again',
      )
    // Two concurrent first writes must not encrypt with two keys.
    making ??= makeKey(keyFile, log).finally(() => {
      making = undefined
    })
    key = await making
    return key
  }
  // Reports a wrong mode at the start, not with the first secret.
  key = readKey(keyFile, log)

  return {
    forPlugin: (plugin) => ({
      async read(name) {
        const row =
          await sql.one<Sealed>`SELECT nonce, sealed FROM core_vault WHERE plugin = ${plugin} AND name = ${name}`
        if (!row) return undefined
        using secret = unseal(await loadKey(false), label(plugin, name), row, `${plugin}/${name}`)
        return secret.toText()
      },
      async write(name, secret, entries = []) {
        const { nonce, sealed } = seal(await loadKey(true), label(plugin, name), secret)
        await sql.batch([
          sql.sql`INSERT INTO core_vault (plugin, name, nonce, sealed) VALUES (${plugin}, ${name}, ${nonce}, ${sealed})
          ON CONFLICT (plugin, name) DO UPDATE SET nonce = excluded.nonce, sealed = excluded.sealed`,
          ...entries,
        ])
      },
      async remove(name, entries = []) {
        const [removed] = await sql.batch([
          sql.sql`DELETE FROM core_vault WHERE plugin = ${plugin} AND name = ${name}`,
          ...entries,
        ])
        const there = (removed?.changes ?? 0) > 0
        if (there) await database.scrub()
        return there
      },
      async names() {
        const rows = await sql.all<{ name: string }>`SELECT name FROM core_vault WHERE plugin = ${plugin} ORDER BY name`
        return rows.map((row) => row.name)
      },
    }),
  }
}

// Additional authenticated data: a value that was moved to another name does not decrypt.
const label = (plugin: string, name: string): Buffer => Buffer.from(JSON.stringify(['svc-vault-1', plugin, name]))

function seal(key: KeyObject, aad: Buffer, secret: string): Sealed {
  const nonce = randomBytes(NONCE_BYTES)
  using plain = new SecretBytes(secret)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(aad)
  const body = plain.use((bytes) => cipher.update(bytes))
  return { nonce, sealed: Buffer.concat([body, cipher.final(), cipher.getAuthTag()]) }
}

function unseal(key: KeyObject, aad: Buffer, { nonce, sealed }: Sealed, name: string): SecretBytes {
  let plain: Buffer | undefined
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(aad)
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
    plain = decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES))
    decipher.final()
    return new SecretBytes(plain)
  } catch (error) {
    throw new Error(
      `the secret "${name}" does not open: the record was changed, or the key file is not the one it was written with`,
      { cause: error },
    )
  } finally {
    plain?.fill(0)
  }
}

/** Synchronous: it reads a few bytes at every start. */
export function readKey(file: string, log: ConsolaInstance | undefined): KeyObject | undefined {
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
  const text = readFileSync(file)
  const bytes = Buffer.from(text.toString('latin1').trim(), 'hex')
  text.fill(0)
  try {
    if (bytes.length !== KEY_BYTES)
      throw new Error(
        `the vault's key file ${file} is damaged: it must hold ${KEY_BYTES * 2} hex digits. Put it back from a copy`,
      )
    return createSecretKey(bytes)
  } finally {
    bytes.fill(0)
  }
}

async function makeKey(file: string, log: ConsolaInstance | undefined): Promise<KeyObject> {
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
  const key = readKey(file, log)
  if (!key) throw new Error(`the vault's key file ${file} could not be made`)
  return key
}
