import { Lexer } from 'marked'
import type { Token, Tokens } from 'marked'
import { decodeReferences, withoutThoughts } from './clean.ts'
import { tableText } from './table.ts'

/** What surrounds a piece of text. The identity of the object tells two neighbours of the same kind apart. */
export type Mark =
  | { readonly kind: 'bold' | 'italic' | 'strike' | 'paragraph' | 'quote' }
  | { readonly kind: 'heading'; readonly level: number }
  /** `text`: what is shown instead of the address, without markup. */
  | { readonly kind: 'link'; readonly href: string; readonly text: string }
  /** `ticks`: the longest run of backticks in the code. */
  | { readonly kind: 'code'; readonly ticks: number }
  | { readonly kind: 'code-block'; readonly language: string; readonly ticks: number }
  | { readonly kind: 'list'; readonly ordered: boolean; readonly start: number }
  | { readonly kind: 'item'; readonly bullet: string }

/** A piece of text with everything that surrounds it, outermost first. */
export interface Run {
  readonly text: string
  readonly marks: readonly Mark[]
  /** The space between two blocks, which markup with tags for blocks does not need. */
  readonly isGap?: true
}

/** Nested deeper than this, a text is shown as it was written: the lexer's time grows with the square of the depth. */
const MAX_DEPTH = 32
/**
 * Longer than this, a paragraph is shown as it was written: the time for emphasis, links and addresses grows with the
 * square of its length, and nothing else runs meanwhile.
 */
const MAX_PARAGRAPH_CHARS = 2500
/** With more signs of markup than this, too: the time grows with the square of their number. */
const MAX_SIGNS = 300
const SIGNS = /[*_~`[\]<&@]/g
/** More columns than this are no table for a chat. */
const MAX_COLUMNS = 50
const options = { gfm: true, breaks: true } as const

/**
 * The text and structure of a Markdown text, in order. Thoughts of a model (`<think>`) are left out. A text of more
 * than
 * `maxChars` is shown as it was written: nothing else runs while it is read.
 */
export function readMarkdown(markdown: string, maxChars: number): readonly Run[] {
  const text = withoutThoughts(markdown.replaceAll('\r\n', '\n'))
  const runs: Run[] = []
  const asWritten: readonly Run[] = [{ text, marks: [{ kind: 'paragraph' }] }]
  if (text.length > maxChars || isTooDeep(text)) return asWritten
  try {
    new Reader(runs).blocks(lex(text), [])
  } catch (error) {
    // Emphasis and links within a line nest without a limit, and the lexer recurses for each.
    if (error instanceof RangeError) return asWritten
    throw error
  }
  return runs
}

function lex(text: string): readonly Token[] {
  const lexer = new Lexer(options)
  lexer.blockTokens(text, lexer.tokens)
  for (const { src, tokens } of lexer.inlineQueue)
    if (isShort(src)) lexer.inlineTokens(src, tokens)
    else tokens.push({ type: 'escape', raw: src, text: src })
  return lexer.tokens
}

function isShort(paragraph: string): boolean {
  return paragraph.length <= MAX_PARAGRAPH_CHARS && (paragraph.match(SIGNS)?.length ?? 0) <= MAX_SIGNS
}

/** The mark of an item of an ordered list. */
const NUMBER = /\d{1,9}[.)] /y

/** Counts the marks of quotes and lists at the beginning of a line, and its indentation. */
function isTooDeep(text: string): boolean {
  return text.split('\n').some((line) => {
    let depth = 0
    for (let at = 0; at < line.length && depth <= MAX_DEPTH * 2; at++) {
      const char = line[at] ?? ''
      if (char === '>' || ((char === '-' || char === '*' || char === '+') && line[at + 1] === ' ')) depth += 2
      else if (char === ' ') depth += 0.5
      else if (char === '\t') depth += 2
      else {
        NUMBER.lastIndex = at
        if (!NUMBER.test(line)) break
        depth += 2
        at = NUMBER.lastIndex - 1
      }
    }
    return depth > MAX_DEPTH * 2
  })
}

/** Marks that are nested deeper are left out; their text stays. */
function within(marks: readonly Mark[], mark: Mark): readonly Mark[] {
  return marks.length < MAX_DEPTH ? [...marks, mark] : marks
}

class Reader {
  readonly #runs: Run[]
  constructor(runs: Run[]) {
    this.#runs = runs
  }

  blocks(tokens: readonly Token[], marks: readonly Mark[], gap = '\n\n'): void {
    let isFirst = true
    for (const token of tokens) {
      if (token.type === 'space' || token.type === 'def') continue
      if (!isFirst) this.#runs.push({ text: gap, marks, isGap: true })
      isFirst = false
      this.#block(token, marks)
    }
  }

  #block(token: Token, marks: readonly Mark[]): void {
    switch (token.type) {
      case 'heading':
        return this.#inline(
          token.tokens ?? [],
          within(marks, { kind: 'heading', level: (token as Tokens.Heading).depth }),
        )
      case 'paragraph':
        return this.#inline(token.tokens ?? [], within(marks, { kind: 'paragraph' }))
      case 'text':
        return token.tokens ? this.#inline(token.tokens, marks) : this.#add(decodeReferences(token.raw), marks)
      case 'blockquote':
        return this.blocks(token.tokens ?? [], within(marks, { kind: 'quote' }))
      case 'list':
        return this.#list(token as Tokens.List, marks)
      case 'code': {
        const { text, lang = '' } = token as Tokens.Code
        return this.#codeBlock(text, lang.split(/\s/, 1)[0] ?? '', marks)
      }
      case 'table': {
        const table = token as Tokens.Table
        const text = table.header.length > MAX_COLUMNS ? table.raw.trimEnd() : tableText(table)
        return this.#codeBlock(text, '', marks)
      }
      case 'hr':
        return this.#add('―――', within(marks, { kind: 'paragraph' }))
      default:
        this.#add(token.raw.trimEnd(), within(marks, { kind: 'paragraph' }))
    }
  }

  #list({ items, ordered, start, loose }: Tokens.List, marks: readonly Mark[]): void {
    const inList: readonly Mark[] = within(marks, { kind: 'list', ordered, start: Number(start) || 1 })
    for (const [index, item] of items.entries()) {
      if (index > 0) this.#runs.push({ text: loose ? '\n\n' : '\n', marks: inList, isGap: true })
      const number = ordered ? `${(Number(start) || 1) + index}. ` : '• '
      const box = item.task ? (item.checked ? '☑ ' : '☐ ') : ''
      const inItem: readonly Mark[] = [...inList, { kind: 'item', bullet: item.task && !ordered ? box : number + box }]
      // An empty item still shows its bullet.
      if (item.tokens.length === 0) this.#add('\u200b', inItem)
      this.blocks(
        item.tokens.filter(({ type }) => type !== 'checkbox'),
        inItem,
        loose ? '\n\n' : '\n',
      )
    }
  }

  #inline(tokens: readonly Token[], marks: readonly Mark[]): void {
    for (const token of tokens) this.#span(token, marks)
  }

  #span(token: Token, marks: readonly Mark[]): void {
    const inner = token as Token & { readonly tokens?: readonly Token[]; readonly text?: string }
    switch (token.type) {
      case 'strong':
        return this.#inline(inner.tokens ?? [], within(marks, { kind: 'bold' }))
      case 'em':
        return this.#inline(inner.tokens ?? [], within(marks, { kind: 'italic' }))
      case 'del':
        return this.#inline(inner.tokens ?? [], within(marks, { kind: 'strike' }))
      case 'codespan':
        return this.#add(inner.text ?? '', within(marks, { kind: 'code', ticks: longestTicks(inner.text ?? '') }))
      case 'br':
        return this.#add('\n', marks)
      case 'link':
        return this.#link(token as Tokens.Link, marks)
      case 'image': {
        const { href, text } = token as Tokens.Image
        return this.#add(text === '' ? href : text, within(marks, { kind: 'link', href, text }))
      }
      case 'escape':
        return this.#add(inner.text ?? '', marks)
      case 'html':
        return this.#add(/^<br\s*\/?>$/i.test(token.raw.trim()) ? '\n' : token.raw, marks)
      case 'text':
        return inner.tokens ? this.#inline(inner.tokens, marks) : this.#add(decodeReferences(token.raw), marks)
      default:
        this.#add(token.raw, marks)
    }
  }

  #codeBlock(text: string, language: string, marks: readonly Mark[]): void {
    this.#add(text, within(marks, { kind: 'code-block', language, ticks: longestTicks(text) }))
  }

  #link({ href, text, tokens }: Tokens.Link, marks: readonly Mark[]): void {
    this.#inline(tokens, within(marks, { kind: 'link', href, text }))
  }

  #add(text: string, marks: readonly Mark[]): void {
    if (text !== '') this.#runs.push({ text, marks })
  }
}

function longestTicks(code: string): number {
  return (code.match(/`+/g) ?? []).reduce((longest, { length }) => Math.max(longest, length), 0)
}
