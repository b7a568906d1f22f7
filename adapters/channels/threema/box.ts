import { createHmac } from 'node:crypto'
import nacl from 'tweetnacl'
import type { Content } from './wire.ts'

/** NaCl numbers its nonces by itself where a key is used once. */
export const FILE_NONCE = Uint8Array.from({ length: 24 }, (_, index) => (index === 23 ? 1 : 0))
/** Shorter ones would tell something about the content. */
const MIN_BYTES = 32
const MAX_PADDING = 255

export interface SealedBox {
  readonly nonce: Uint8Array
  readonly box: Uint8Array
}

/** The private key of the id, and boxes that it makes and opens. */
export class BoxKey {
  readonly publicKey: Uint8Array
  readonly #secretKey: Uint8Array

  constructor(privateKey: string) {
    this.#secretKey = Uint8Array.from(Buffer.from(privateKey.replace(/^private:/i, ''), 'hex'))
    this.publicKey = nacl.box.keyPair.fromSecretKey(this.#secretKey).publicKey
  }

  /**
   * Nonce and padding follow from the attempt and the content, so that another attempt makes the same box: apps drop a
   * message whose nonce they know. The same nonce never meets another content.
   */
  seal({ type, data }: Content, reader: Uint8Array, attempt: string): SealedBox {
    const content = Buffer.concat([Uint8Array.of(type), data])
    const mac = createHmac('sha512', this.#secretKey)
    for (const part of [attempt, '\0', reader, content]) mac.update(part)
    const derived = mac.digest()
    const random = 1 + ((derived[24] ?? 0) % MAX_PADDING)
    const padding = Math.max(random, MIN_BYTES - data.length)
    const padded = Buffer.concat([content, new Uint8Array(padding).fill(padding)])
    const nonce = Uint8Array.from(derived.subarray(0, 24))
    return { nonce, box: nacl.box(Uint8Array.from(padded), nonce, reader, this.#secretKey) }
  }

  /** What is in a box; `undefined` when the writer did not make it for this key. */
  open({ nonce, box }: SealedBox, writer: Uint8Array): Content | undefined {
    const padded = nacl.box.open(box, nonce, writer, this.#secretKey)
    const [type] = padded ?? []
    const padding = padded?.at(-1) ?? 0
    if (!padded || type === undefined || padding === 0 || padding > padded.length - 1) return undefined
    return { type, data: padded.subarray(1, padded.length - padding) }
  }
}

export function sealFile(bytes: Uint8Array): { readonly key: Uint8Array; readonly sealed: Uint8Array } {
  const key = nacl.randomBytes(nacl.secretbox.keyLength)
  return { key, sealed: nacl.secretbox(bytes, FILE_NONCE, key) }
}

export function openFile(sealed: Uint8Array, key: Uint8Array): Uint8Array | undefined {
  return nacl.secretbox.open(sealed, FILE_NONCE, key) ?? undefined
}
