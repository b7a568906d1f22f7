import { Marked } from 'marked'
import type { Token, Tokens } from 'marked'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'
import { escapeControls } from '../../log/text.ts'

export interface MarkdownOptions {
  /** Columns of the terminal. */
  readonly width: number
  readonly colored: boolean
}

/** Deeper than this a text is shown as it was written. */
const MAX_DEPTH = 12
/**
 * The lexer's time grows with the square of what is nested: one that takes longer is not asked again about the same
 * block.
 */
const SLOW_MS = 250
/** A text as short as this is slow only where the machine is. */
const SHORT = 1000
/** A block that does not end is written in parts of this size. */
const MAX_PENDING = 8000

const styles = {
  bold: [1, 22],
  dim: [2, 22],
  italic: [3, 23],
  underline: [4, 24],
  struck: [9, 29],
  code: [36, 39],
} as const
const marked = new Marked({ gfm: true, breaks: true })
const NOT_BLOCKS = new Set(['space', 'def'])

/**
 * Markdown for a terminal. Whatever the text holds, what comes out has no control characters but those of this
 * renderer: every piece of text goes through `escapeControls` as the last step, after references such as `&amp;` were
 * resolved.
 */
export function renderMarkdown(text: string, options: MarkdownOptions): string {
  const tokens = lex(text)
  return tokens ? new Renderer(options).blocks(tokens, options.width, 0) : escapeControls(text, true)
}

/** The blocks of a text; `undefined` when it is nested deeper than the lexer can go. */
function lex(text: string): Token[] | undefined {
  try {
    return marked.lexer(text)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/**
 * Renders a text that is still being written: blocks that are complete are given out, the one that grows can be looked
 * at.
 */
export class MarkdownStream {
  readonly #options: () => MarkdownOptions
  #pending = ''
  #begun = false
  #plain = false
  /** Milliseconds the lexer took last. */
  cost = 0
  constructor(options: () => MarkdownOptions) {
    this.#options = options
  }

  add(text: string): void {
    this.#pending += text.replaceAll(/\r\n?/g, '\n')
  }

  /** What is complete by now, as whole lines; `''` when nothing is. */
  take(): string {
    if (this.#pending === '') return ''
    if (this.#plain) return this.#takePlain()
    const started = performance.now()
    const tokens = lex(this.#pending)
    this.cost = performance.now() - started
    if (!tokens || (this.cost > SLOW_MS && this.#pending.length > SHORT)) {
      this.#plain = true
      return this.#takePlain()
    }
    // Only the last block can still change.
    let length = 0
    for (const token of tokens.slice(0, lastBlock(tokens))) length += token.raw.length
    let out = this.#give(this.#pending.slice(0, length))
    this.#pending = this.#pending.slice(length)
    const last = tokens.at(-1)
    if (this.#pending.length > MAX_PENDING && last) out += this.#giveBeginning(last)
    return out
  }
  /** The block that is not complete yet, as it would look, with the empty line above it. */
  peek(): string {
    if (this.#pending.trim() === '') return ''
    if (this.#plain) return escapeControls(this.#pending, true)
    return `${this.#gap}${renderMarkdown(this.#pending, this.#options())}`
  }
  /** Everything that is left. What is added afterwards is another text. */
  end(): string {
    const done = this.take()
    const rest = this.#pending
    const last = this.#plain ? (rest === '' ? '' : `${escapeControls(rest, true)}\n`) : this.#give(rest)
    this.#pending = ''
    this.#begun = false
    this.#plain = false
    return done + last
  }

  #give(raw: string): string {
    if (raw.trim() === '') return ''
    const block = `${this.#gap}${renderMarkdown(raw, this.#options())}\n`
    this.#begun = true
    return block
  }
  /** Between two blocks. */
  get #gap(): string {
    return this.#begun ? '\n' : ''
  }
  /** The first lines or items of a long block; the rest goes on as a block of the same kind. */
  #giveBeginning(last: Token): string {
    if (last.type === 'code' && 'lang' in last) {
      const cut = this.#pending.lastIndexOf('\n')
      const head = this.#pending.slice(0, this.#pending.indexOf('\n') + 1)
      if (cut < head.length) return this.#cut(MAX_PENDING)
      const out = this.#give(this.#pending.slice(0, cut + 1))
      // A fence that is not closed goes on until the end of the text.
      this.#pending = /^ {0,3}(?:`{3}|~{3})/.test(head)
        ? head + this.#pending.slice(cut + 1)
        : this.#pending.slice(cut + 1)
      return out
    }
    if (last.type === 'list') {
      const items = (last as Tokens.List).items.slice(0, -1)
      const length = items.reduce((sum, item) => sum + item.raw.length, 0)
      if (length > 0) return this.#cut(length)
    }
    const line = this.#pending.lastIndexOf('\n')
    return this.#cut(line > 0 ? line + 1 : MAX_PENDING)
  }
  #cut(length: number): string {
    const out = this.#give(this.#pending.slice(0, length))
    this.#pending = this.#pending.slice(length)
    return out
  }
  #takePlain(): string {
    const cut = this.#pending.lastIndexOf('\n') + 1
    const out = escapeControls(this.#pending.slice(0, cut), true)
    this.#pending = this.#pending.slice(cut)
    // An empty line ends what was nested too deep.
    if (/\n[ \t]*\n$/.test(out)) this.#plain = false
    if (out !== '') this.#begun = true
    return out
  }
}

function lastBlock(tokens: readonly Token[]): number {
  let at = tokens.length - 1
  while (at > 0 && NOT_BLOCKS.has(tokens[at]?.type ?? '')) at--
  return Math.max(at, 0)
}

class Renderer {
  readonly #colored: boolean
  constructor({ colored }: MarkdownOptions) {
    this.#colored = colored
  }

  blocks(tokens: readonly Token[], width: number, depth: number): string {
    return tokens
      .filter(({ type }) => !NOT_BLOCKS.has(type))
      .map((token) => this.#block(token, Math.max(width, 10), depth))
      .join('\n\n')
  }

  #paint(style: keyof typeof styles, text: string): string {
    const [on, off] = styles[style]
    return this.#colored && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text
  }
  #wrap(text: string, width: number): string {
    return wrapAnsi(text, width, { hard: true })
  }

  #block(token: Token, width: number, depth: number): string {
    if (depth > MAX_DEPTH) return this.#wrap(escapeControls(token.raw.trimEnd(), true), width)
    switch (token.type) {
      case 'heading': {
        const text = this.#inline(token.tokens ?? [], depth)
        const shown = this.#colored ? this.#paint('bold', text) : `${'#'.repeat(Number(token['depth']))} ${text}`
        return this.#wrap(token['depth'] === 1 ? this.#paint('underline', shown) : shown, width)
      }
      case 'code':
        // Not wrapped here: a line that the terminal wraps can be copied as it is.
        return escapeControls(String(token['text']), true)
          .split('\n')
          .map((line) => (line === '' ? '' : `    ${this.#paint('code', line)}`))
          .join('\n')
      case 'blockquote':
        return prefix(this.blocks(token.tokens ?? [], width - 2, depth + 1), `${this.#paint('dim', '│')} `)
      case 'list':
        return this.#list(token as Tokens.List, width, depth)
      case 'table':
        return this.#table(token as Tokens.Table, width, depth)
      case 'hr':
        return this.#paint('dim', '─'.repeat(Math.min(width, 40)))
      case 'paragraph':
      case 'text':
        return this.#wrap(this.#inline(token.tokens ?? [token], depth), width)
      default:
        return this.#wrap(escapeControls(token.raw.trimEnd(), true), width)
    }
  }

  #list(list: Tokens.List, width: number, depth: number): string {
    const first = Number(list.start === '' ? 1 : list.start)
    return list.items
      .map((item, index) => {
        const box = item.task ? (item.checked ? '[x] ' : '[ ] ') : ''
        const mark = `${list.ordered ? `${first + index}.` : '•'} ${box}`
        const inner = item.tokens.filter(({ type }) => type !== 'checkbox')
        const text = inner
          .filter(({ type }) => !NOT_BLOCKS.has(type))
          .map((token) => this.#block(token, Math.max(width - mark.length, 10), depth + 1))
          .join(list.loose ? '\n\n' : '\n')
        return mark + prefix(text, ' '.repeat(mark.length)).slice(mark.length)
      })
      .join(list.loose ? '\n\n' : '\n')
  }

  #table(table: Tokens.Table, width: number, depth: number): string {
    const head = table.header.map(({ tokens }) => this.#inline(tokens, depth))
    const rows = table.rows.map((row) => row.map(({ tokens }) => this.#inline(tokens, depth)))
    const widths = head.map((cell, column) =>
      Math.max(...[cell, ...rows.map((row) => row[column] ?? '')].map((text) => stringWidth(text))),
    )
    const total = widths.reduce((sum, each) => sum + each + 2, -2)
    if (total > width) {
      // Too wide for columns: each row below the other, with its headings.
      return rows
        .map((row) =>
          row
            .map((cell, column) => this.#wrap(`${this.#paint('bold', head[column] ?? '')}: ${cell}`, width))
            .join('\n'),
        )
        .join('\n\n')
    }
    const line = (cells: readonly string[]): string =>
      cells
        .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - stringWidth(cell))))
        .join('  ')
        .trimEnd()
    return [
      line(head.map((cell) => this.#paint('bold', cell))),
      this.#paint('dim', widths.map((each) => '─'.repeat(each)).join('  ')),
      ...rows.map(line),
    ].join('\n')
  }

  #inline(tokens: readonly Token[], depth: number): string {
    return tokens.map((token) => this.#piece(token, depth)).join('')
  }
  #piece(token: Token, depth: number): string {
    if (depth > MAX_DEPTH) return escapeControls(token.raw, true)
    const inner = (): string =>
      'tokens' in token && token.tokens
        ? this.#inline(token.tokens, depth + 1)
        : safe('text' in token ? String(token.text) : '')
    switch (token.type) {
      case 'strong':
        return this.#paint('bold', inner())
      case 'em':
        return this.#paint('italic', inner())
      case 'del':
        return this.#paint('struck', inner())
      case 'codespan': {
        const text = escapeControls(String(token['text']), true)
        return this.#colored ? this.#paint('code', text) : `\`${text}\``
      }
      case 'br':
        return '\n'
      case 'checkbox':
        return ''
      case 'link': {
        const text = inner()
        const target = safe(String(token['href']))
        return text === target || `mailto:${text}` === target
          ? this.#paint('underline', text)
          : `${this.#paint('underline', text)} (${target})`
      }
      case 'image':
        return describeImage(String(token['text']), String(token['href']))
      case 'text':
        return inner()
      case 'escape':
        return safe(String(token['text']))
      default:
        return escapeControls(token.raw, true)
    }
  }
}

function describeImage(text: string, address: string): string {
  return `[image${text === '' ? '' : `: ${safe(text)}`}] (${safe(address)})`
}

const references: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' }
function safe(text: string): string {
  return escapeControls(
    text.replaceAll(/&(amp|lt|gt|quot|#39|nbsp);/g, (whole, name: string) => references[name] ?? whole),
    true,
  )
}
function prefix(text: string, mark: string): string {
  return text
    .split('\n')
    .map((line) => (mark + line).trimEnd())
    .join('\n')
}
