import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { Refusal } from 'svc/sdk'

const SEED_BYTES = 32
/** What stands before the seed of an Ed25519 key in PKCS #8, RFC 8410. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * The key that both sides make of the AppSecret. Whoever has it can sign as QQ does.
 * Source: https://bot.q.qq.com/wiki/develop/api-v2/dev-prepare/interface-framework/sign.html
 */
export class WebhookKey {
  readonly #private: KeyObject
  readonly #public: KeyObject

  constructor(secret: string) {
    const seed = Buffer.from(secret.repeat(SEED_BYTES)).subarray(0, SEED_BYTES)
    this.#private = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' })
    this.#public = createPublicKey(this.#private)
  }

  sign(content: string | Uint8Array): string {
    return sign(null, Buffer.from(content), this.#private).toString('hex')
  }

  /** Throws `Refusal('unauthorized')` unless the header is the signature of the content. */
  verify(content: Uint8Array, header: string | undefined): void {
    const isHex = header !== undefined && /^[\da-f]{128}$/i.test(header)
    if (!isHex || !verify(null, content, this.#public, Buffer.from(header, 'hex')))
      throw new Refusal('unauthorized', 'The request is not signed with the secret of this channel')
  }
}
