import { Refusal } from 'svc/sdk'

export interface Part {
  readonly name: string
  readonly filename: string | undefined
  readonly type: string | undefined
  readonly content: Uint8Array
}

const MOST_PARTS = 32
const HEADER_BYTES = 8192
const refuse = (why: string): Refusal => new Refusal('invalid_request', `multipart: ${why}`)

/**
 * The parts of a `multipart/form-data` body (RFC 7578). Bytes are views into the body, and every byte is looked at a fixed number of
 * times whatever the sender put there. Throws `invalid_request`.
 */
export function readMultipart(body: Uint8Array, contentType: string): readonly Part[] {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const boundary = boundaryOf(contentType)
  const line = Buffer.from(`\r\n--${boundary}`)
  // The first delimiter needs no line break before it.
  let at = bytes.subarray(0, line.length - 2).equals(line.subarray(2))
    ? line.length - 2
    : after(bytes.indexOf(line), line.length)
  const parts: Part[] = []
  for (;;) {
    if (bytes[at] === 0x2d && bytes[at + 1] === 0x2d) return parts
    while (bytes[at] === 0x20 || bytes[at] === 0x09) at++
    if (bytes[at] !== 0x0d || bytes[at + 1] !== 0x0a) throw refuse('a boundary is followed by something else')
    if (parts.length === MOST_PARTS) throw refuse(`at most ${MOST_PARTS} parts`)
    at += 2
    const end = bytes.subarray(at, at + HEADER_BYTES).indexOf('\r\n\r\n')
    if (end < 0)
      throw refuse(`the headers of part ${parts.length + 1} do not end, or have more than ${HEADER_BYTES} bytes`)
    const headers = bytes.subarray(at, at + end).toString('utf8')
    const from = at + end + 4
    const until = bytes.indexOf(line, from - 2)
    if (until < 0) throw refuse('the body ends before its last boundary')
    parts.push({ ...headersOf(headers), content: bytes.subarray(from, Math.max(from, until)) })
    at = until + line.length
  }
}

function after(found: number, length: number): number {
  if (found < 0) throw refuse('there is no boundary in the body')
  return found + length
}

function boundaryOf(contentType: string): string {
  const found = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType.slice(0, 1024))
  const boundary = found?.[1] ?? found?.[2]
  if (boundary === undefined || !/^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/.test(boundary))
    throw refuse('Content-Type has no usable boundary')
  return boundary
}

function headersOf(text: string): Omit<Part, 'content'> {
  let disposition: string | undefined
  let type: string | undefined
  for (const header of text.split('\r\n')) {
    const colon = header.indexOf(':')
    const name = header.slice(0, Math.max(colon, 0)).trim().toLowerCase()
    if (name === 'content-disposition') disposition ??= header.slice(colon + 1).trim()
    if (name === 'content-type') type ??= header.slice(colon + 1).trim()
    if (name === 'content-transfer-encoding' && !/^\s*(binary|8bit|7bit)\s*$/i.test(header.slice(colon + 1)))
      throw refuse('an encoded part is not accepted')
  }
  if (disposition === undefined || !/^form-data\s*(;|$)/i.test(disposition))
    throw refuse('a part has no Content-Disposition of form-data')
  return { name: parameter(disposition, 'name') ?? '', filename: parameter(disposition, 'filename'), type }
}

/** A quoted or bare parameter; senders escape a quote as `%22` or with a backslash. */
function parameter(disposition: string, name: string): string | undefined {
  const found = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]*))`, 'i').exec(disposition)
  const value = found?.[1]?.replaceAll(/\\(["\\])/g, '$1') ?? found?.[2]
  return value?.replaceAll('%22', '"').replaceAll(/%0[ad]/gi, '')
}
