import { Marked } from 'marked'
import type { Token, Tokens } from 'marked'
import { escapeHtml } from './escape.ts'

export interface Link {
  readonly text: string
  readonly href: string
}

/** `resolve` says where a link leads; without an answer only its text is shown. */
export function toHtml(markdown: string, resolve: (href: string) => string | undefined): string {
  const anchorOf = anchorMaker()
  const marked = new Marked({
    gfm: true,
    renderer: {
      html: ({ text }) => escapeHtml(text),
      // The heading of the page itself comes first in the outline.
      heading({ tokens, depth, text }) {
        const level = Math.min(6, depth + 1)
        const id = escapeHtml(anchorOf(text))
        return `<h${level} id="${id}"><a href="#${id}">${this.parser.parseInline(unlinked(tokens))}</a></h${level}>`
      },
      code: ({ text, lang = '' }) =>
        `<pre tabindex="0" data-language="${escapeHtml(lang)}"><code>${escapeHtml(text)}</code></pre>`,
      table(token) {
        const cells = (row: readonly Tokens.TableCell[], tag: 'td' | 'th'): string =>
          row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')
        // A table of links has an empty heading.
        const head = token.header.some(({ text }) => text !== '')
          ? `<thead><tr>${cells(token.header, 'th')}</tr></thead>`
          : ''
        const rows = token.rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('')
        return `<div class="table" role="region" aria-label="Table" tabindex="0"><table>${head}<tbody>${rows}</tbody></table></div>`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        const url = resolve(href)
        return url === undefined ? text : `<a href="${escapeHtml(url)}">${text}</a>`
      },
      image: ({ text }) => escapeHtml(text),
    },
  })
  return marked.parser(marked.lexer(markdown))
}

/** The text of the first heading. */
export function titleOf(markdown: string): string {
  return /^# (.+)$/m.exec(markdown)?.[1]?.replaceAll('`', '') ?? ''
}

/** Makes the anchors of the headings of a page, in their order, as GitHub does. */
export function anchorMaker(): (heading: string) => string {
  const taken = new Map<string, number>()
  return (heading) => {
    const base = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-')
    const times = taken.get(base) ?? 0
    taken.set(base, times + 1)
    return times === 0 ? base : `${base}-${times}`
  }
}

/** The links of each row of the first table under a heading. */
export function tableLinks(markdown: string, heading: string): readonly (readonly Link[])[] {
  const tokens = new Marked().lexer(markdown)
  const start = tokens.findIndex((token) => token.type === 'heading' && token['text'] === heading)
  const table = tokens.slice(start + 1).find(isTable)
  return table?.rows.map((row) => row.flatMap((cell) => linksOf(cell.tokens))) ?? []
}
function linksOf(tokens: readonly Token[]): readonly Link[] {
  return tokens.filter(isLink).map(({ text, href }) => ({ text: text.replaceAll('`', ''), href }))
}
/** A heading is a link to itself. */
function unlinked(tokens: readonly Token[]): Token[] {
  return tokens.flatMap((token) => (isLink(token) ? token.tokens : [token]))
}
const isTable = (token: Token): token is Tokens.Table => token.type === 'table'
const isLink = (token: Token): token is Tokens.Link => token.type === 'link'
