const TAGS = new Set(['b', 'strong', 'i', 'em', 'u', 'ins', 's', 'strike', 'del', 'code', 'pre', 'a', 'blockquote'])
const MORE_TAGS = new Set(['tg-spoiler', 'span', 'tg-emoji'])

/** The text of HTML as the Bot API parses it. Throws what the Bot API answers for HTML that it refuses. */
export function parseTelegramHtml(html: string): string {
  const open: string[] = []
  let text = ''
  let at = 0
  while (at < html.length) {
    const char = html[at] ?? ''
    if (char !== '<') {
      text += char
      at++
      continue
    }
    const end = html.indexOf('>', at)
    const tag = end < 0 ? null : /^<(\/?)([a-z-]+)((?:\s+[a-z-]+="[^"<>]*")*)\s*>$/.exec(html.slice(at, end + 1))
    if (!tag) throw new Error(`can't parse entities: Unsupported start tag at byte offset ${at}`)
    const name = tag[2] ?? ''
    if (!TAGS.has(name) && !MORE_TAGS.has(name))
      throw new Error(`can't parse entities: Unsupported start tag "${name}" at byte offset ${at}`)
    if (tag[1] === '') open.push(name)
    else if (open.pop() !== name) throw new Error(`can't parse entities: Unexpected end tag at byte offset ${at}`)
    at = end + 1
  }
  if (open.length > 0)
    throw new Error(`can't parse entities: Can't find end tag corresponding to start tag ${open.at(-1)}`)
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
}
