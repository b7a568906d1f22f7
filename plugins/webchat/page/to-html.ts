import { Marked } from 'marked'
import type { Token, Tokens } from 'marked'
import { escapeHtml } from './escape-html.ts'
import { blockMath, inlineMath } from './math-marks.ts'

// The first of two defences: the renderer makes no raw HTML, no foreign image and no unusual link. The sanitiser of the
// page is the second. An answer may contain anything that a web page or a file made the model write.

const harmlessTag = /^<\/?(?:b|br|code|del|em|i|ins|kbd|mark|s|strong|sub|sup|u)\s*\/?>$/i
const embedded = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=\s]+$/i
/** Nesting of lists and quotes. Nobody reads deeper ones, and every level slows rendering down. */
const deepest = 12
/** Pieces that are kept as they come. */
const mostPieces = 200
/** Of HTML, when there are more. */
const pieceChars = 4000
/** Rows or items that are drawn at a time. */
const sliceRows = 100
/** Cells of a table that are drawn at a time. */
const sliceCells = 1500
/** Links, formulas and other parts of a paragraph that are drawn at a time. */
const sliceParts = 1000
/** Characters of code that are drawn at a time. */
const sliceCode = 20_000

const marked = new Marked({
  gfm: true,
  breaks: true,
  extensions: [blockMath, inlineMath],
  renderer: {
    html: ({ text }) => (harmlessTag.test(text.trim()) ? text : escapeHtml(text)),
    // The page's own headings come first in the outline.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 2)
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`
    },
    code: ({ text, lang }) =>
      `<pre data-language="${escapeHtml((lang ?? '').split(/\s/)[0] ?? '')}"><code>${escapeHtml(text)}</code></pre>`,
    link({ href, tokens }) {
      const label = this.parser.parseInline(tokens)
      const url = linkTarget(href)
      return url ? `<a href="${escapeHtml(url.href)}" title="${escapeHtml(url.href)}">${label}</a>` : label
    },
    // Loading a foreign image would send its server whatever the agent was made to put into the address.
    image({ href, text }) {
      if (embedded.test(href)) return `<img src="${escapeHtml(href)}" alt="${escapeHtml(text)}">`
      const url = linkTarget(href)
      const label = escapeHtml(text === '' ? 'Image' : `Image: ${text}`)
      if (!url) return label
      const address = escapeHtml(url.href)
      return `<a href="${address}" title="${address}">${label} (${escapeHtml(url.host)}, not loaded)</a>`
    },
  },
})

/** Markdown as pieces of HTML, each small enough to be drawn between two frames. */
export function toHtml(markdown: string): readonly string[] {
  const blocks = marked
    .lexer(flatten(markdown))
    .filter(({ type }) => type !== 'space')
    .flatMap(sliced)
    .map((block) => marked.parser([block]))
  return blocks.length <= mostPieces ? blocks : gathered(blocks)
}

/** Small ones together: what is drawn piece by piece should not have tens of thousands of them. */
function gathered(blocks: readonly string[]): readonly string[] {
  const pieces: string[] = []
  let piece = ''
  for (const block of blocks) {
    if (piece !== '' && piece.length + block.length > pieceChars) {
      pieces.push(piece)
      piece = ''
    }
    piece += block
  }
  return piece === '' ? pieces : [...pieces, piece]
}

/** Whether the text can be turned into HTML between two frames: it is short, and holds little of what nests. */
export function isTame(markdown: string): boolean {
  return (
    markdown.length <= 20_000 && (markdown.match(/[[\]*_<~`!|$\\]/g)?.length ?? 0) <= 500 && !/\S{1000}/.test(markdown)
  )
}

/**
 * Removes nesting deeper than what is rendered, line by line: indentation, and markers of lists and quotes before the
 * text. Fenced code stays as it is.
 */
export function flatten(markdown: string): string {
  let fence: string | undefined
  return markdown
    .split('\n')
    .map((line) => {
      const mark = /^[ >]*(`{3,}|~{3,})/.exec(line)?.[1]
      if (fence !== undefined) {
        if (mark?.startsWith(fence)) fence = undefined
        return line
      }
      fence = mark
      return flattenLine(line)
    })
    .join('\n')
}
function flattenLine(line: string): string {
  const marker = /(?:[-*+>]|\d{1,9}[.)])(?=[ \t>]|$)[ \t]*|>/y
  const indent = /^[ \t]*/.exec(line)?.[0] ?? ''
  marker.lastIndex = indent.length
  let levels = 0
  let kept = indent.length
  for (let at = kept; marker.test(line); at = marker.lastIndex) {
    if (++levels <= deepest) kept = marker.lastIndex
    marker.lastIndex = Math.max(marker.lastIndex, at + 1)
  }
  const maxIndent = deepest * 2
  const lead = indent.length > maxIndent ? indent.slice(0, maxIndent) : indent
  if (levels <= deepest) return lead === indent ? line : lead + line.slice(indent.length)
  // A rule of dashes or stars is no list.
  if (/^[ \t]*(?:[-*_][ \t]*){3,}$/.test(line)) return line.slice(0, 100)
  const rest = line.slice(kept).replace(/^(?:(?:[-*+>]|\d{1,9}[.)])[ \t]*)+/, '')
  return lead + line.slice(indent.length, kept) + rest
}

/** Long paragraphs, lists, tables and code in several pieces. */
function sliced(block: Token): Token[] {
  if (isList(block) && block.items.length > sliceRows) {
    const start = typeof block.start === 'number' ? block.start : 1
    return slices(block.items).map((items, at) => ({
      ...block,
      items,
      ...(block.ordered ? { start: start + at * sliceRows } : {}),
    }))
  }
  if (isParagraph(block) && block.tokens.length > sliceParts)
    return slices(block.tokens, sliceParts).map((tokens) => ({ ...block, tokens }))
  if (isTable(block)) {
    const rows = Math.max(1, Math.min(sliceRows, Math.floor(sliceCells / block.header.length)))
    if (block.rows.length > rows) return slices(block.rows, rows).map((some) => ({ ...block, rows: some }))
  }
  if (block.type === 'code' && typeof block['text'] === 'string' && block['text'].length > sliceCode) {
    const { text } = block
    const pieces: Token[] = []
    for (let at = 0; at < text.length;) {
      // At the end of a line, if there is one.
      const cut = at + sliceCode >= text.length ? text.length : text.lastIndexOf('\n', at + sliceCode)
      const end = cut <= at ? Math.min(text.length, at + sliceCode) : cut
      pieces.push({ ...block, text: text.slice(at, end) })
      at = text.charAt(end) === '\n' ? end + 1 : end
    }
    return pieces
  }
  return [block]
}
function slices<T>(rows: readonly T[], size = sliceRows): T[][] {
  return Array.from({ length: Math.ceil(rows.length / size) }, (_, at) => rows.slice(at * size, (at + 1) * size))
}
const isParagraph = (block: Token): block is Tokens.Paragraph => block.type === 'paragraph'
const isList = (block: Token): block is Tokens.List => block.type === 'list'
const isTable = (block: Token): block is Tokens.Table => block.type === 'table'

function linkTarget(href: string): URL | undefined {
  if (!URL.canParse(href)) return undefined
  const url = new URL(href)
  return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : undefined
}
