import { mediaTypeOf } from 'svc/internal'
import { reply } from 'svc/sdk'

const TEXT = 'text/plain; charset=utf-8'
const UNKNOWN = 'application/octet-stream'
/** Text types that are served as declared: no browser executes them. By type, and by file extension. */
const texts: Readonly<Record<string, string>> = {
  'text/csv': 'text/csv; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  'text/markdown': 'text/markdown; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
  'application/json': 'application/json',
  json: 'application/json',
}

/**
 * The type to store and serve a file as, from its bytes. The declared type and the name only distinguish kinds of text.
 * `undefined` when a declared picture is not one.
 */
export async function storedType(
  content: Uint8Array,
  declared: string | undefined,
  filename: string,
): Promise<string | undefined> {
  const declaredType = declared?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const found = await mediaTypeOf(content)
  // A drawing is text, with scripts where its author likes.
  if (declaredType.startsWith('image/') && declaredType !== 'image/svg+xml' && !found.startsWith('image/'))
    return undefined
  // Text in an older encoding is known by its sender only.
  const isText =
    found === 'text/plain' || (found === UNKNOWN && declaredType.startsWith('text/') && !content.includes(0))
  if (!isText) return /^[a-z]+\/(?:xml|html)$|\+xml$|javascript/.test(found) ? UNKNOWN : found
  const extension = filename.slice(filename.lastIndexOf('.') + 1).toLowerCase()
  const kind = [declaredType, extension].find((key) => Object.hasOwn(texts, key))
  return (kind === undefined ? undefined : texts[kind]) ?? TEXT
}

/** A name that is safe in a folder and in a header, as near to the sender's as can be. */
export function safeName(name: string): string {
  const last = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
  const clean = last
    .toWellFormed()
    .normalize('NFC')
    .replaceAll(/[\p{Cc}\p{Bidi_Control}\u2028\u2029:*?"<>|%]/gu, '_')
    .slice(0, 80)
    .toWellFormed()
    .replace(/[. ]+$/, '')
    .trimStart()
  return clean === '' || /^(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(\.|$)/i.test(clean) ? `file${clean}` : clean
}

/** `attachment` with the name for old and new clients (RFC 6266). */
function attachment(name: string): string {
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

/** A page must not run what an agent wrote: it is saved, never shown. */
export const asFile = (content: Uint8Array, type: string, name: string) =>
  reply(content, {
    'content-type': type,
    'content-disposition': attachment(name),
    'content-security-policy': 'sandbox',
  })
