import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

/** A key of a fake platform with what it publishes of it. */
export interface SigningKey {
  readonly id: string
  readonly privateKey: KeyObject
  readonly jwk: Readonly<Record<string, unknown>>
}

export function makeSigningKey(id: string, more: object = {}): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { id, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid: id, use: 'sig', alg: 'RS256', ...more } }
}

/** A token as RFC 7519 makes it: with a key, or with a secret. */
export function signToken(claims: object, key: Pick<SigningKey, 'id' | 'privateKey'> | string): string {
  const header = typeof key === 'string' ? { alg: 'HS256' } : { alg: 'RS256', kid: key.id }
  const content = [{ ...header, typ: 'JWT' }, claims].map((part) => encode(JSON.stringify(part))).join('.')
  const signature =
    typeof key === 'string'
      ? createHmac('sha256', key).update(content).digest()
      : sign('sha256', Buffer.from(content), key.privateKey)
  return `${content}.${encode(signature)}`
}

const encode = (part: string | Uint8Array): string => Buffer.from(part).toString('base64url')
