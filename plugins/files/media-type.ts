/** What may be uploaded, and what it is served as: nothing a browser would run as a page of ours. */
const byType: Readonly<Record<string, string>> = {
  'image/png': 'image/png',
  'image/jpeg': 'image/jpeg',
  'image/jpg': 'image/jpeg',
  'image/gif': 'image/gif',
  'image/webp': 'image/webp',
  'image/bmp': 'image/bmp',
  'image/avif': 'image/avif',
  'audio/mpeg': 'audio/mpeg',
  'audio/mp3': 'audio/mpeg',
  'audio/mp4': 'audio/mp4',
  'audio/x-m4a': 'audio/mp4',
  'audio/aac': 'audio/aac',
  'audio/ogg': 'audio/ogg',
  'audio/opus': 'audio/ogg',
  'audio/wav': 'audio/wav',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'audio/webm': 'audio/webm',
  'audio/flac': 'audio/flac',
  'audio/x-flac': 'audio/flac',
  'application/pdf': 'application/pdf',
  'application/json': 'application/json',
  'application/zip': 'application/zip',
  'application/yaml': 'text/plain; charset=utf-8',
  'application/x-yaml': 'text/plain; charset=utf-8',
  'application/toml': 'text/plain; charset=utf-8',
  'application/xml': 'text/plain; charset=utf-8',
  'text/csv': 'text/csv; charset=utf-8',
  'text/markdown': 'text/markdown; charset=utf-8',
  // A drawing can hold scripts: kept, and never shown as what it is.
  'image/svg+xml': 'application/octet-stream',
}
const byExtension: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  bmp: 'image/bmp',
  avif: 'image/avif',
  svg: 'image/svg+xml',
  mp3: 'audio/mpeg',
  m4a: 'audio/mp4',
  aac: 'audio/aac',
  ogg: 'audio/ogg',
  opus: 'audio/opus',
  wav: 'audio/wav',
  flac: 'audio/flac',
  pdf: 'application/pdf',
  json: 'application/json',
  zip: 'application/zip',
  csv: 'text/csv',
  md: 'text/markdown',
  txt: 'text/plain',
  log: 'text/plain',
  yaml: 'text/plain',
  yml: 'text/plain',
  toml: 'text/plain',
  xml: 'text/plain',
  html: 'text/plain',
}

/** The type to store and serve; `undefined` for one that is not accepted. A sender that does not know is asked for the file's name. */
export function storedType(declared: string | undefined, filename: string): string | undefined {
  const essence = declared?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const unknown =
    essence === '' || essence === 'application/octet-stream' || essence === 'application/x-www-form-urlencoded'
  const extension = filename.slice(filename.lastIndexOf('.') + 1).toLowerCase()
  const type = unknown ? (Object.hasOwn(byExtension, extension) ? (byExtension[extension] ?? '') : '') : essence
  if (Object.hasOwn(byType, type)) return byType[type]
  return /^text\/[a-z0-9.+-]{1,64}$/.test(type) ? 'text/plain; charset=utf-8' : undefined
}

/** A name that is safe in a folder and in a header, as near to the sender's as can be. */
export function safeName(name: string): string {
  const last = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
  const clean = last
    .toWellFormed()
    .normalize('NFC')
    .replaceAll(/[\p{Cc}\u2028\u2029:*?"<>|%]/gu, '_')
    .slice(0, 80)
    .toWellFormed()
    .replace(/[. ]+$/, '')
    .trimStart()
  return clean === '' || /^(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(\.|$)/i.test(clean) ? `file${clean}` : clean
}

/** `attachment` with the name for old and new clients (RFC 6266). */
export function attachment(name: string): string {
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}
