import { createDecipheriv, createHash } from 'node:crypto'

const BLOCK_BYTES = 32
const RANDOM_BYTES = 16
const LENGTH_BYTES = 4

/** How WeChat signs: the SHA-1 of the texts in order of the alphabet. */
export function signatureOf(...texts: readonly string[]): string {
  return createHash('sha1').update(texts.toSorted().join('')).digest('hex')
}

export interface OpenedEnvelope {
  readonly xml: string
  /** For whom it was encrypted. */
  readonly appId: string
}
/** AES-256-CBC with blocks of 32 bytes. `undefined` for what was not encrypted with this key. */
export function openEnvelope(encrypted: string, aesKey: string): OpenedEnvelope | undefined {
  const key = Buffer.from(`${aesKey}=`, 'base64')
  const bytes = Buffer.from(encrypted, 'base64')
  if (bytes.length === 0 || bytes.length % BLOCK_BYTES !== 0) return undefined
  const decipher = createDecipheriv('aes-256-cbc', key, key.subarray(0, 16)).setAutoPadding(false)
  const padded = Buffer.concat([decipher.update(bytes), decipher.final()])
  const padding = padded.at(-1) ?? 0
  const content = padded.subarray(RANDOM_BYTES + LENGTH_BYTES, padded.length - padding)
  const length = padded.readUInt32BE(RANDOM_BYTES)
  if (padding < 1 || padding > BLOCK_BYTES || length > content.length) return undefined
  return { xml: content.subarray(0, length).toString('utf8'), appId: content.subarray(length).toString('utf8') }
}
