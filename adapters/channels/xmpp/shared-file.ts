import { attachmentKind } from 'svc/channels'
import type { InboundAttachment } from 'svc/channels'

/** XMPP names the address of a file and nothing else. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  gif: 'image/gif',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  m4a: 'audio/mp4',
  mp3: 'audio/mpeg',
  oga: 'audio/ogg',
  ogg: 'audio/ogg',
  opus: 'audio/ogg',
  wav: 'audio/wav',
  mov: 'video/quicktime',
  mp4: 'video/mp4',
  webm: 'video/webm',
  csv: 'text/csv',
  json: 'application/json',
  md: 'text/markdown',
  pdf: 'application/pdf',
  txt: 'text/plain',
}

/**
 * The file at an address that somebody sent; `undefined` unless it lies on the bot's own server. The address of another
 * server would be a request to wherever a stranger likes.
 */
export function sharedFile(address: string, domain: string): InboundAttachment | undefined {
  const url = URL.parse(address)
  if (!url || !isOfServer(url, domain)) return undefined
  const encoded = url.pathname.split('/').at(-1) ?? ''
  const name = decodeName(encoded)
  const extension = name.split('.').at(-1)?.toLowerCase() ?? ''
  const mime = (Object.hasOwn(MEDIA_TYPES, extension) && MEDIA_TYPES[extension]) || 'application/octet-stream'
  return { kind: attachmentKind(mime), name: name || 'file', mime, reference: { url: url.href } }
}

export function isOfServer({ hostname, protocol }: URL, domain: string): boolean {
  const host = hostname.toLowerCase()
  return /^https?:$/.test(protocol) && (host === domain || host.endsWith(`.${domain}`))
}

function decodeName(encoded: string): string {
  try {
    return decodeURIComponent(encoded).replaceAll(/[/\\\p{Cc}]/gu, '_')
  } catch {
    return encoded // No valid escapes: it is the name as it stands.
  }
}
