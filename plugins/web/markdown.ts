import { decodeHTML } from 'entities'

/** Elements whose text is not for reading. */
const unreadable: ReadonlySet<string> = new Set([
  'script',
  'style',
  'noscript',
  'svg',
  'template',
  'iframe',
  'object',
  'canvas',
  'select',
  'button',
  'textarea',
  'title',
])
const blocks: ReadonlySet<string> = new Set([
  'p',
  'div',
  'section',
  'article',
  'main',
  'header',
  'footer',
  'aside',
  'nav',
  'form',
  'fieldset',
  'figure',
  'figcaption',
  'address',
  'details',
  'summary',
  'dl',
  'dt',
  'dd',
  'table',
  'tbody',
  'thead',
  'body',
  'html',
  'center',
])
/** A tag whose quotes do not close within so many characters ends at its next `>`. */
const TAG_CHARS = 1024
const MAX_DEPTH = 8

/** Text without character references. Soft hyphens and invalid characters are dropped. */
function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  return decodeHTML(text).replaceAll(/[\u00ad\ufffd]/g, '')
}

interface Tag {
  readonly name: string
  readonly closing: boolean
  readonly attributes: string
  readonly end: number
}

/**
 * The readable part of a page as Markdown, with its links made absolute.  Decision: our own reader, because a hostile
 * page must not hold up the daemon. It reads the text once, from start to end. turndown 7.2 and node-html-markdown 2.0
 * build a tree: 100,000 nested elements end in a stack overflow or take minutes, and a megabyte of paragraphs takes 4 s
 * and more than 15 s.
 */
export function toMarkdown(html: string, base: string): { readonly title: string; readonly text: string } {
  const lower = html.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
  const title = decodeEntities(between(html, lower, '<title', '</title') ?? '')
    .replaceAll(/\s+/g, ' ')
    .trim()
  const main = span(lower, '<main', '</main')
  const whole = main && main.end - main.start > 500 ? main : { start: 0, end: html.length }
  const out = new Page(base)
  let at = whole.start
  while (at < whole.end) {
    const open = html.indexOf('<', at)
    if (open < 0 || open >= whole.end) {
      out.text(html.slice(at, whole.end))
      break
    }
    if (open > at) out.text(html.slice(at, open))
    if (html.startsWith('<!--', open)) {
      const end = html.indexOf('-->', open + 4)
      if (end < 0) break
      at = end + 3
      continue
    }
    const tag = readTag(html, lower, open)
    if (tag === 'text') {
      out.text('<')
      at = open + 1
    } else if (!tag) break
    else if (!tag.closing && unreadable.has(tag.name)) {
      const close = lower.indexOf(`</${tag.name}`, tag.end)
      if (close < 0) break
      at = close + tag.name.length + 2
      const end = html.indexOf('>', at)
      at = end < 0 ? html.length : end + 1
    } else {
      out.tag(tag)
      at = tag.end
    }
  }
  return { title, text: out.end() }
}

/** `text` for a `<` that begins no tag, `undefined` when the page ends within one. */
function readTag(html: string, lower: string, open: number): Tag | 'text' | undefined {
  const match = /^<(\/?)([a-z][a-z\d-]{0,40}|[!?])/.exec(lower.slice(open, open + 44))
  if (!match) return 'text'
  const [head, slash, name = ''] = match
  const from = open + head.length
  let quote = ''
  let end = -1
  for (let at = from; at < Math.min(html.length, from + TAG_CHARS); at++) {
    const sign = html.charAt(at)
    if (quote !== '') {
      if (sign === quote) quote = ''
    } else if (sign === '>') {
      end = at
      break
    } else if (sign === '"' || sign === "'") quote = sign
  }
  if (end < 0) end = html.indexOf('>', from)
  return end < 0
    ? undefined
    : { name, closing: slash === '/', attributes: html.slice(from, Math.min(end, from + 8192)), end: end + 1 }
}

function attribute(attributes: string, name: string): string | undefined {
  for (const match of attributes.matchAll(
    /([a-zA-Z-]{1,40})\s{0,8}=\s{0,8}(?:"([^"]{0,4096})"|'([^']{0,4096})'|([^\s"'>]{1,2048}))/g,
  )) {
    if (match[1]?.toLowerCase() === name) return decodeEntities(match[2] ?? match[3] ?? match[4] ?? '').trim()
  }
  return undefined
}

function span(
  lower: string,
  open: string,
  close: string,
): { readonly start: number; readonly end: number } | undefined {
  const from = lower.indexOf(open)
  const start = from < 0 ? -1 : lower.indexOf('>', from) + 1
  const end = start > 0 ? lower.lastIndexOf(close) : -1
  return end > start ? { start, end } : undefined
}
function between(html: string, lower: string, open: string, close: string): string | undefined {
  const from = lower.indexOf(open)
  const start = from < 0 ? 0 : lower.indexOf('>', from) + 1
  const end = start > 0 ? lower.indexOf(close, start) : -1
  return end < 0 ? undefined : html.slice(start, Math.min(end, start + 500))
}

/** The Markdown of a page as it grows. */
class Page {
  readonly #base: string
  readonly #out: string[] = []
  readonly #lists: ('ul' | number)[] = []
  /** Line breaks that are due before the next text. */
  #breaks = 0
  #space = false
  #pre = false
  #quotes = 0
  /** Of the line before. */
  #quoted = 0
  #href: string | undefined
  #cells = 0
  constructor(base: string) {
    this.#base = base
  }

  text(raw: string): void {
    const text = decodeEntities(raw)
    if (this.#pre) return this.#write(text)
    const plain = text.replaceAll(/[\s\u00A0]+/g, ' ')
    if (plain === ' ' || plain === '') {
      this.#space ||= plain === ' '
      return
    }
    if (plain.startsWith(' ')) this.#space = true
    this.#write(plain.trim())
    this.#space = plain.endsWith(' ')
  }

  tag({ name, closing, attributes }: Tag): void {
    if (/^h[1-6]$/.test(name)) return this.#heading(Number(name.charAt(1)), closing)
    switch (name) {
      case 'br':
        return this.#due(1)
      case 'hr':
        this.#due(2)
        this.#mark('---')
        return this.#due(2)
      case 'pre':
        return this.#preformatted(closing)
      case 'blockquote':
        this.#due(2)
        this.#quotes = Math.max(0, Math.min(MAX_DEPTH, this.#quotes + (closing ? -1 : 1)))
        return
      case 'ul':
      case 'ol':
        return this.#list(name, closing)
      case 'li':
        return closing ? this.#due(1) : this.#item()
      case 'tr':
        this.#due(1)
        this.#cells = 0
        return
      case 'td':
      case 'th':
        if (!closing && this.#cells++ > 0) this.#mark(' | ')
        return
      default:
        if (blocks.has(name)) this.#due(name === 'dt' || name === 'dd' ? 1 : 2)
        else if (!this.#pre) this.#inline(name, closing, attributes)
    }
  }

  #heading(level: number, closing: boolean): void {
    this.#due(2)
    if (!closing) this.#mark(`${'#'.repeat(level)} `)
  }
  #preformatted(closing: boolean): void {
    if (closing !== this.#pre) return
    this.#due(closing ? 1 : 2)
    this.#mark('```')
    this.#breaks = closing ? 2 : 1
    this.#pre = !closing
  }

  end(): string {
    return this.#out
      .join('')
      .split('\n')
      .map((line) => line.trimEnd())
      .join('\n')
      .trim()
  }

  #inline(name: string, closing: boolean, attributes: string): void {
    if (name === 'a') {
      if (this.#href !== undefined) this.#link()
      const href = closing ? undefined : this.#address(attribute(attributes, 'href'))
      if (href === undefined) return
      this.#href = href
      this.#mark('[')
    } else if (name === 'img' && !closing) {
      const alt = attribute(attributes, 'alt')
      if (alt !== undefined && alt !== '') this.text(`[image: ${alt}]`)
    } else if (name === 'strong' || name === 'b') this.#style('**', closing)
    else if (name === 'em' || name === 'i') this.#style('*', closing)
    else if (name === 'code') this.#style('`', closing)
  }
  #style(sign: string, closing: boolean): void {
    if (!closing) return this.#mark(sign)
    // Nothing in between: the opening mark is removed again.
    if (this.#out.at(-1) === sign) this.#out.pop()
    else this.#out.push(sign)
  }
  #link(): void {
    if (this.#out.at(-1) === '[') this.#out.pop()
    else this.#out.push(`](${this.#href ?? ''})`)
    this.#href = undefined
  }
  #address(href: string | undefined): string | undefined {
    if (href === undefined || href.startsWith('#') || !URL.canParse(href, this.#base)) return undefined
    const url = new URL(href, this.#base)
    // A link that carries data or a script is nothing to follow.
    return ['http:', 'https:', 'mailto:'].includes(url.protocol)
      ? url.href.replaceAll('(', '%28').replaceAll(')', '%29')
      : undefined
  }

  #list(name: 'ul' | 'ol', closing: boolean): void {
    this.#due(this.#lists.length > 0 ? 1 : 2)
    if (closing) this.#lists.pop()
    else if (this.#lists.length < MAX_DEPTH) this.#lists.push(name === 'ul' ? 'ul' : 0)
    if (closing) this.#due(this.#lists.length > 0 ? 1 : 2)
  }
  #item(): void {
    this.#due(1)
    const list = this.#lists.at(-1)
    if (typeof list === 'number') this.#lists[this.#lists.length - 1] = list + 1
    this.#mark(`${'  '.repeat(Math.max(0, this.#lists.length - 1))}${typeof list === 'number' ? `${list + 1}.` : '-'} `)
  }

  #due(breaks: number): void {
    this.#breaks = Math.max(this.#breaks, breaks)
    this.#space = false
  }
  /** A sign that belongs to what follows it. */
  #mark(sign: string): void {
    this.#write(sign)
    this.#space = false
  }
  #write(text: string): void {
    const quote = '> '.repeat(this.#quotes)
    if (this.#breaks > 0) {
      if (this.#out.length > 0)
        this.#out.push(this.#breaks > 1 ? `\n${'> '.repeat(Math.min(this.#quotes, this.#quoted))}\n` : '\n')
      if (quote !== '') this.#out.push(quote)
    } else if (this.#space && this.#out.length > 0) this.#out.push(' ')
    this.#breaks = 0
    this.#space = false
    this.#quoted = this.#quotes
    this.#out.push(this.#pre && quote !== '' ? text.replaceAll('\n', `\n${quote}`) : text)
  }
}
