import type { OutboundResponse } from 'svc/sdk'
import { toMarkdown } from './markdown.ts'

/** The rest of a longer page is not converted: it would hold up everyone else. */
const HTML_CHARS = 2_000_000

/** The content of a response as text for a model. Markup becomes Markdown; anything but text is only named. */
export async function readPage(
  response: OutboundResponse,
  maxChars: number,
): Promise<{ readonly type: string; readonly text: string }> {
  const header = response.header('content-type') ?? ''
  const type = (header.split(';', 1)[0] ?? '').trim().toLowerCase()
  const bytes = await response.bytes()
  if (!isText(type) && (type !== '' || bytes.includes(0)))
    return { type, text: `[${bytes.byteLength} bytes of ${type || 'an unknown kind'}, not shown]` }
  const text = decode(bytes, header)
  if (
    type !== 'text/html' &&
    type !== 'application/xhtml+xml' &&
    !/^\s*<(!doctype html|html)/i.test(text.slice(0, 200))
  )
    return { type, text: cut(text, maxChars) }
  const page = toMarkdown(text.slice(0, HTML_CHARS), response.url)
  return { type, text: cut(page.title === '' ? page.text : `# ${page.title}\n\n${page.text}`, maxChars) }
}

const TEXT_TYPES: ReadonlySet<string> = new Set([
  'json',
  'xml',
  'xhtml+xml',
  'javascript',
  'ecmascript',
  'x-javascript',
  'yaml',
  'x-yaml',
  'toml',
  'x-ndjson',
  'graphql',
  'sql',
  'x-www-form-urlencoded',
  'x-sh',
])
function isText(type: string): boolean {
  if (type.startsWith('text/')) return true
  const subtype = /^application\/([\w.+-]+)$/.exec(type)?.[1]
  return subtype !== undefined && (TEXT_TYPES.has(subtype) || /^[\w.-]+\+(json|xml|yaml)$/.test(subtype))
}
function decode(bytes: Uint8Array, header: string): string {
  const charset = /charset=["']?([\w:.-]{1,40})/i.exec(header)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    // An unknown charset: most text is UTF-8.
    return new TextDecoder().decode(bytes)
  }
}
function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}\n[cut: ${text.length - maxChars} more characters]`
}
