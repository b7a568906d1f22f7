const SKIPPED = new Set(['script', 'style', 'head', 'title', 'template'])
const BLOCKS = new Set('address blockquote br div h1 h2 h3 h4 h5 h6 hr li ol p pre section table tr ul'.split(' '))
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }
const MAX_HTML_CHARS = 1_000_000

/** What a reader sees of a message in HTML. Each sign is passed once, whatever the message is made of. */
export function htmlToText(html: string): string {
  const source = html.slice(0, MAX_HTML_CHARS)
  // Only these letters are in the names of tags, and others may become longer.
  const lower = source.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  let text = ''
  let at = 0
  while (at < source.length) {
    const open = source.indexOf('<', at)
    text += source.slice(at, open === -1 ? undefined : open).replaceAll(/\s+/g, ' ')
    if (open === -1) break
    const isComment = source.startsWith('<!--', open)
    const close = isComment ? source.indexOf('-->', open) : source.indexOf('>', open)
    if (close === -1) break
    const name = isComment ? '' : (/^[a-z][a-z0-9]*/.exec(lower.slice(open + 1, open + 20).replace('/', ''))?.[0] ?? '')
    if (BLOCKS.has(name)) text += '\n'
    at = close + (isComment ? 3 : 1)
    if (!SKIPPED.has(name) || lower[open + 1] === '/') continue
    const end = lower.indexOf(`</${name}`, at)
    if (end === -1) break
    at = end
  }
  const lines = decodeEntities(text).split('\n')
  return lines
    .map((line) => line.trim())
    .join('\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
}

function decodeEntities(text: string): string {
  return text.replaceAll(/&(#x?[0-9a-f]{1,6}|[a-z]{2,6});/gi, (all, name: string) => {
    if (!name.startsWith('#')) return ENTITIES[name.toLowerCase()] ?? all
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return code > 0 && code <= 0x10_ff_ff && !Number.isNaN(code) ? String.fromCodePoint(code) : all
  })
}
