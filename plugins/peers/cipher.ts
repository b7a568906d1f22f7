import { createCipheriv, createDecipheriv } from 'node:crypto'
import { frame, LINK_BYTES } from './frames.ts'
import type { FrameCodec } from './frames.ts'
import { LinkRefusal } from './mac.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** One direction of an encrypted link. Its counter is the nonce, so that none is used twice and no frame is missing. */
export class FrameCipher implements FrameCodec {
  readonly #key: Buffer
  readonly #direction: Buffer
  #counter = 0n
  constructor(key: Buffer, direction: 'initiator' | 'responder') {
    this.#key = key
    this.#direction = Buffer.from(direction)
  }

  seal(body: Uint8Array): Buffer {
    if (body.byteLength + TAG_BYTES > LINK_BYTES) throw new LinkRefusal(400, `A frame has at most ${LINK_BYTES} bytes`)
    const cipher = createCipheriv(ALGORITHM, this.#key, this.#nonce(), { authTagLength: TAG_BYTES })
    cipher.setAAD(this.#direction)
    const content = Buffer.concat([cipher.update(body), cipher.final(), cipher.getAuthTag()])
    this.#counter++
    return frame(content)
  }

  open(content: Buffer): Buffer {
    const end = content.byteLength - TAG_BYTES
    if (end < 0) throw notNext()
    const decipher = createDecipheriv(ALGORITHM, this.#key, this.#nonce(), { authTagLength: TAG_BYTES })
    decipher.setAAD(this.#direction)
    decipher.setAuthTag(content.subarray(end))
    const body = decipher.update(content.subarray(0, end))
    try {
      decipher.final()
    } catch {
      throw notNext()
    }
    this.#counter++
    return body
  }

  #nonce(): Buffer {
    const nonce = Buffer.alloc(NONCE_BYTES)
    nonce.writeBigUInt64BE(this.#counter, NONCE_BYTES - 8)
    return nonce
  }
}
const notNext = (): LinkRefusal => new LinkRefusal(403, 'A frame is not what the peer sent next')
