import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import * as v from 'valibot'
import { Refusal } from '../errors/error.ts'
import { readKey } from './vault-key-source.ts'
import type { VaultKeySource } from './vault-key-source.ts'

const derive = promisify<string, Buffer, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(scrypt)
/** 64 MiB and about a fifth of a second for each guess. */
const COST = { N: 65_536, r: 8, p: 1, maxmem: 134_217_728 }
const base64 = v.pipe(v.string(), v.base64())
const Sealed = v.object({
  format: v.literal('svc-vault-key-1'),
  salt: base64,
  nonce: base64,
  sealed: base64,
  tag: base64,
})

/**
 * A key for one purpose, made from that of the vault, which cannot be found from it. `undefined` when there is none.
 */
export async function deriveKey(source: VaultKeySource, purpose: string): Promise<Buffer | undefined> {
  const key = readKey(source, undefined)
  return key && deriveFrom(key.export(), purpose)
}
function deriveFrom(key: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', purpose, 32))
}

/** The vault's key under a passphrase, as text. Throws when there is none. */
export async function sealKey(source: VaultKeySource, passphrase: string): Promise<string> {
  const key = readKey(source, undefined)
  if (!key) throw new Refusal('conflict', 'There is no vault key yet, so there is nothing to put under a passphrase')
  const [salt, nonce] = [randomBytes(16), randomBytes(12)]
  const cipher = createCipheriv('aes-256-gcm', await derive(passphrase, salt, 32, COST), nonce)
  const sealed = Buffer.concat([cipher.update(key.export()), cipher.final()])
  return JSON.stringify({
    format: 'svc-vault-key-1',
    salt: salt.toString('base64'),
    nonce: nonce.toString('base64'),
    sealed: sealed.toString('base64'),
    tag: cipher.getAuthTag().toString('base64'),
  } satisfies v.InferOutput<typeof Sealed>)
}

/**
 * The text of a key file and a key for one purpose. Throws `invalid_request` for another passphrase and for what
 * `sealKey` did not make.
 */
export async function unsealKey(
  text: string,
  passphrase: string,
  purpose: string,
): Promise<{ readonly keyFile: string; readonly derived: Buffer }> {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Sealed), text)
  if (!parsed.success) throw new Refusal('invalid_request', 'The sealed key of the vault is damaged')
  const { salt, nonce, sealed, tag } = parsed.output
  try {
    const decipher = createDecipheriv(
      'aes-256-gcm',
      await derive(passphrase, Buffer.from(salt, 'base64'), 32, COST),
      Buffer.from(nonce, 'base64'),
      { authTagLength: 16 },
    )
    decipher.setAuthTag(Buffer.from(tag, 'base64'))
    const key = Buffer.concat([decipher.update(Buffer.from(sealed, 'base64')), decipher.final()])
    return { keyFile: `${key.toString('hex')}\n`, derived: deriveFrom(key, purpose) }
  } catch (error) {
    throw new Refusal('invalid_request', 'The passphrase is not the one the key of the vault was sealed with', {
      cause: error,
    })
  }
}
