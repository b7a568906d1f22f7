const MAX_HEADER = 4096

/** The name that `Content-Disposition` gives a file; `undefined` where it gives none. */
export function fileNameOf(header: string | undefined): string | undefined {
  if (header === undefined || header.length > MAX_HEADER) return undefined
  // Source: RFC 6266. The encoded name goes before the plain one.
  const [, encoded] = /;\s*filename\*=UTF-8''([^;\s]+)/i.exec(header) ?? []
  if (encoded !== undefined) return decoded(encoded)
  const [, quoted, plain] = /;\s*filename=(?:"([^"]*)"|([^;\s]+))/i.exec(header) ?? []
  const name = quoted ?? plain
  // Node reads headers as Latin-1, and Webex writes UTF-8.
  return name === undefined || name === '' ? undefined : Buffer.from(name, 'latin1').toString('utf8')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
