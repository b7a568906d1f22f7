import type { OutboundAttachment } from 'svc/channels'
import { TYPE } from './wire.ts'
import type { Content } from './wire.ts'

/** A text has 3,500 bytes, and a quote 27 of them. */
export const MAX_TEXT_BYTES = 3500 - 27
/** A box has 4,000 bytes, most of them for a text under the file. */
const MAX_CAPTION_BYTES = 1000

export function encodeText(text: string, replyTo?: string): Content {
  const quote = replyTo === undefined ? '' : `> quote #${replyTo}\n\n`
  return { type: TYPE.text, data: Buffer.from(quote + text) }
}

/** Whether the text is shown under the file. */
export function fitsCaption(text: string, attachments: readonly OutboundAttachment[]): boolean {
  return attachments.length === 1 && Buffer.byteLength(text) <= MAX_CAPTION_BYTES
}

export interface UploadedFile {
  readonly blob: string
  readonly key: Uint8Array
  readonly size: number
}
export function encodeFile(
  attachment: OutboundAttachment,
  { blob, key, size }: UploadedFile,
  caption: string,
): Content {
  const { kind, name, mime } = attachment
  const rendering = kind === 'file' ? 0 : 1
  const file = {
    b: blob,
    k: Buffer.from(key).toString('hex'),
    m: mime,
    n: name.slice(0, 255),
    s: size,
    ...(caption !== '' && { d: caption }),
    j: rendering,
    // For apps that do not know `j`.
    i: rendering,
  }
  return { type: TYPE.file, data: Buffer.from(JSON.stringify(file)) }
}
