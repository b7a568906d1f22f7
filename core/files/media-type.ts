import { isUtf8 } from 'node:buffer'

/** Formats whose files may be text from end to end. */
const writtenAsText = new Set(['application/pdf', 'application/rtf', 'application/postscript'])

/**
 * What bytes are, whatever their name says: a media type, `text/plain` for text of any kind,
 * `application/octet-stream` for the unknown.
 */
export async function mediaTypeOf(bytes: Uint8Array): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type')
  const found = (await fileTypeFromBuffer(bytes))?.mime
  const plain = isPlainText(bytes)
  // A few letters are enough for some signatures, so a text may begin with one.
  if (found !== undefined && (!plain || writtenAsText.has(found))) return found
  return plain ? 'text/plain' : 'application/octet-stream'
}
/** Whether people could read all of it. */
function isPlainText(bytes: Uint8Array): boolean {
  return isUtf8(bytes) && !bytes.some((byte) => byte < 0x20 && (byte < 0x08 || byte > 0x0d) && byte !== 0x1b)
}
