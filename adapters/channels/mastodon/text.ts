const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }
const MAX_HTML_CHARS = 200_000

/**
 * What a reader sees of a post. The server allows paragraphs, lists, links and emphasis only. An address is shortened
 * for the eye by spans, which leaves its text whole.
 */
export function textOf(html: string): string {
  const text = html
    .slice(0, MAX_HTML_CHARS)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/<br ?\/?>|<\/li>/gi, '\n')
    .replaceAll(/<\/(?:p|blockquote|pre|ul|ol|h\d)>/gi, '\n\n')
    .replaceAll(/<[^<>]*>/g, '')
  return decodeEntities(text)
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
}

function decodeEntities(text: string): string {
  return text.replaceAll(/&(#x?[0-9a-f]{1,6}|[a-z]{2,6});/gi, (all, name: string) => {
    if (!name.startsWith('#')) return ENTITIES[name.toLowerCase()] ?? all
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : all
  })
}
