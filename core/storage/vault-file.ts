import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { ConsolaInstance } from 'consola'
import type { Database } from './database.ts'
import { SecretBytes } from './secret-bytes.ts'
import { describeKey, makeKey, readKey } from './vault-key-source.ts'
import type { VaultKeySource } from './vault-key-source.ts'
import type { Vault } from './vault.ts'

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

/** Secrets in the database, encrypted with a key outside it. A key that is missing while secrets exist is an error. */
export async function openVault(
  database: Pick<Database, 'sql' | 'scrub'>,
  source: VaultKeySource,
  log?: ConsolaInstance,
): Promise<VaultFile> {
  const { sql } = database
  let key: KeyObject | undefined
  let making: Promise<KeyObject> | undefined
  async function loadKey(make: boolean): Promise<KeyObject> {
    key ??= readKey(source, log)
    if (key) return key
    const kept = await sql.one<{ count: number }>`SELECT count(*) AS count FROM core_vault`
    // Another first write may have made the key, and stored its secret, before the secrets were counted.
    key ??= readKey(source, log)
    if (key) return key
    if (!make || (kept && kept.count > 0))
      throw new Error(
        `the vault holds ${kept?.count ?? 0} secrets, but its key file ${source.file} is gone: ` +
          'put it back, or remove the secrets and enter them again',
      )
    // Two concurrent first writes must not encrypt with two keys.
    making ??= makeKey(source, log).finally(() => {
      making = undefined
    })
    key = await making
    return key
  }
  // Reports a wrong mode at the start, not with the first secret.
  key = readKey(source, log)

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

/** The secrets of a database were encrypted with another key than that of this daemon, or it has none. */
export class VaultKeyRefused extends Error {
  override readonly name = 'VaultKeyRefused'
}

/**
 * Makes sure that every daemon on a PostgreSQL server has the same key: the first one leaves a record that only its key
 * opens, and makes the key if none was given. Throws `VaultKeyRefused`.
 */
export async function checkSharedKey(
  { sql }: Pick<Database, 'sql'>,
  source: VaultKeySource,
  log?: ConsolaInstance,
): Promise<void> {
  const find = (): Promise<(Sealed & { readonly plugin: string; readonly name: string }) | undefined> =>
    sql.one`SELECT plugin, name, nonce, sealed FROM core_vault ORDER BY plugin, name LIMIT 1`
  let key = readKey(source, log)
  let record = await find()
  if (!key && record)
    throw new VaultKeyRefused(`the database holds secrets of other daemons, and ${describeKey(source)} does not exist`)
  key ??= await makeKey(source, log)
  if (record?.plugin !== CHECK.plugin) {
    if (record) tryKey(key, record, source)
    const { nonce, sealed } = seal(key, label(CHECK.plugin, CHECK.name), CHECK.text)
    // Two daemons may start at the same moment: one of their records stays, and both are compared with it.
    await sql.run`INSERT INTO core_vault (plugin, name, nonce, sealed)
      VALUES (${CHECK.plugin}, ${CHECK.name}, ${nonce}, ${sealed}) ON CONFLICT (plugin, name) DO NOTHING`
    record = await find()
  }
  if (record) tryKey(key, record, source)
}
/** No plugin is called so. */
const CHECK = { plugin: '', name: 'check', text: 'svc' }

function tryKey(
  key: KeyObject,
  record: Sealed & { readonly plugin: string; readonly name: string },
  source: VaultKeySource,
): void {
  try {
    unseal(key, label(record.plugin, record.name), record, `${record.plugin}/${record.name}`)[Symbol.dispose]()
  } catch (error) {
    throw new VaultKeyRefused(
      `the secrets on this database were encrypted with another key than ${describeKey(source)}`,
      { cause: error },
    )
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
