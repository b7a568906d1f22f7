/** The parts of a URI of svc, decoded; `undefined` when it is of another kind. */
export function partsOf(uri: string): readonly string[] | undefined {
  if (!uri.startsWith('svc://') || uri.length > 2_048) return undefined
  try {
    return uri.slice('svc://'.length).split('/').map(decodeURIComponent)
  } catch {
    return undefined
  }
}
export function uriOf(...parts: readonly string[]): string {
  return `svc://${parts.map(encodeURIComponent).join('/')}`
}
export function jsonContents(uri: string, value: unknown) {
  return [{ uri, mimeType: 'application/json', text: JSON.stringify(value, null, 2) }]
}
