import { messageOf } from 'svc/internal'
import type { Busboy, FileInfo } from 'busboy'
import type { Readable } from 'node:stream'
import { Refusal } from 'svc/sdk'

export interface FormFile {
  readonly filename: string
  readonly type: string
  readonly content: Uint8Array
}

const MAX_PARTS = 32
const MAX_FIELD_BYTES = 65_536
/** RFC 2046 5.1.1. A longer one would make the search for it slow. */
const BOUNDARY = /;\s*boundary=(?:"[^"]{1,70}"|[^\s;"]{1,70})\s*(?:;|$)/i
const invalid = (reason: string, cause?: unknown): Refusal =>
  new Refusal('invalid_request', `multipart: ${reason}`, { cause })

/**
 * The files of a `multipart/form-data` body (RFC 7578); its text fields are ignored. A file of more than `maxBytes` is
 * cut after one byte more. Throws `invalid_request` for a malformed form and for one of more than 32 parts.
 */
export async function readFormFiles(
  body: Uint8Array,
  contentType: string,
  maxBytes: number,
): Promise<readonly FormFile[]> {
  if (!BOUNDARY.test(contentType))
    throw invalid('Content-Type has no boundary of 1 to 70 characters; let the HTTP client set it')
  const { default: busboy } = await import('busboy')
  const parser = openParser(() =>
    busboy({
      headers: { 'content-type': contentType },
      defParamCharset: 'utf8',
      preservePath: true,
      limits: { parts: MAX_PARTS + 1, fieldSize: MAX_FIELD_BYTES, fileSize: maxBytes + 1 },
    }),
  )
  return collect(parser, Buffer.from(body.buffer, body.byteOffset, body.byteLength))
}

function openParser(open: () => Busboy): Busboy {
  try {
    return open()
  } catch (error) {
    throw invalid('Content-Type cannot be parsed', error)
  }
}

function collect(parser: Busboy, body: Buffer): Promise<readonly FormFile[]> {
  return new Promise((resolve, reject) => {
    const files: FormFile[] = []
    const fail = (error: Error): void => {
      reject(error)
      parser.destroy()
    }
    const checkName = (name: string | undefined): void => {
      if (name === undefined || name === '') fail(invalid('a part has no name'))
    }
    parser.on('field', checkName)
    parser.on('file', (name: string | undefined, stream, info) => {
      checkName(name)
      if (!/^(?:7bit|8bit|binary)$/.test(info.encoding))
        fail(invalid('a part has a Content-Transfer-Encoding; send its bytes as they are'))
      readFile(stream, info, fail, (file) => files.push(file))
    })
    parser.on('partsLimit', () => {
      fail(invalid(`more than ${MAX_PARTS} parts`))
    })
    parser.on('error', (error) => {
      fail(invalid(explain(error), error))
    })
    parser.on('close', () => {
      resolve(files)
    })
    parser.end(body)
  })
}

function readFile(
  stream: Readable,
  { filename, mimeType }: FileInfo,
  fail: (error: Error) => void,
  add: (file: FormFile) => void,
): void {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
  })
  stream.on('error', (error) => {
    fail(invalid(explain(error), error))
  })
  stream.on('end', () => {
    // A part of type application/octet-stream without a file name is a text field.
    if (filename !== undefined)
      add({ filename: unescapeName(filename), type: mimeType, content: Buffer.concat(chunks) })
  })
}

/** Browsers send quotes and line breaks of a name as `%22`, `%0D` and `%0A`. */
function unescapeName(name: string): string {
  return name.replaceAll('%22', '"').replaceAll(/%0[ad]/gi, '')
}

function explain(error: unknown): string {
  const message = messageOf(error)
  if (/end of (?:form|file)/.test(message)) return 'the body ends before its closing boundary, or has another boundary'
  if (/part header/.test(message)) return 'the headers of a part are malformed or have more than 16 KiB'
  return message
}
