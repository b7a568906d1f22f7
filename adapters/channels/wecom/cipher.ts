import { createDecipheriv } from 'node:crypto'

const BLOCK = 32
const IV_BYTES = 16
const RANDOM_BYTES = 16
const LENGTH_BYTES = 4

/** WeCom fills up to 32 bytes, and not to 16 as usual. Throws for what was not encrypted with this key. */
function decipherOf(key: Buffer) {
  const decipher = createDecipheriv('aes-256-cbc', key, key.subarray(0, IV_BYTES))
  return decipher.setAutoPadding(false)
}

function withoutPadding(bytes: Buffer): Buffer {
  const length = bytes.at(-1) ?? 0
  const padding = bytes.subarray(-length)
  if (length < 1 || length > BLOCK || padding.length < length || padding.some((byte) => byte !== length))
    throw new Error('wrong padding')
  return bytes.subarray(0, bytes.length - length)
}

/** The text of a callback, and the id of whom it is for. */
export function decryptMessage(
  encodingAesKey: string,
  encrypted: string,
): { readonly text: string; readonly id: string } {
  const decipher = decipherOf(Buffer.from(`${encodingAesKey}=`, 'base64'))
  const whole = Buffer.concat([decipher.update(encrypted, 'base64'), decipher.final()])
  const bytes = withoutPadding(whole).subarray(RANDOM_BYTES)
  const end = LENGTH_BYTES + bytes.readUInt32BE(0)
  if (end > bytes.length) throw new Error('wrong length')
  return { text: bytes.toString('utf8', LENGTH_BYTES, end), id: bytes.toString('utf8', end) }
}

/** The content of a file, while it is read. */
export async function* decryptFile(content: AsyncIterable<Uint8Array>, aesKey: string): AsyncGenerator<Uint8Array> {
  const decipher = decipherOf(Buffer.from(aesKey, 'base64'))
  // The last bytes may be padding.
  let held = Buffer.alloc(0)
  for await (const chunk of content) {
    const bytes = Buffer.concat([held, decipher.update(chunk)])
    const end = Math.max(0, bytes.length - BLOCK)
    if (end > 0) yield bytes.subarray(0, end)
    held = bytes.subarray(end)
  }
  yield withoutPadding(Buffer.concat([held, decipher.final()]))
}
