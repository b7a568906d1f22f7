import { createCipheriv, randomBytes } from 'node:crypto'

/** As WeCom encrypts: filled up to 32 bytes. */
export function encryptForWeCom(key: Buffer, content: Uint8Array): Buffer {
  const padding = 32 - (content.length % 32)
  const cipher = createCipheriv('aes-256-cbc', key, key.subarray(0, 16)).setAutoPadding(false)
  return Buffer.concat([cipher.update(content), cipher.update(Buffer.alloc(padding, padding)), cipher.final()])
}

/** A callback: random bytes, the length of the text, the text, and the id of whom it is for. */
export function sealForWeCom(encodingAesKey: string, text: string, id: string): string {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(Buffer.byteLength(text))
  const content = Buffer.concat([randomBytes(16), length, Buffer.from(text), Buffer.from(id)])
  return encryptForWeCom(Buffer.from(`${encodingAesKey}=`, 'base64'), content).toString('base64')
}
