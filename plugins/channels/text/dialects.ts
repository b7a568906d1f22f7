import type { Dialect } from 'svc/channels'
import { isLinkable } from './clean.ts'
import type { Mark } from './document.ts'

/** How a dialect writes text and the marks around it. */
export interface DialectRules {
  /** `isCode`: the text is shown as it is. `isLineStart`: a sign here could begin a list, a quote or a heading. */
  escape(text: string, isCode: boolean, isLineStart: boolean): string
  /** Text before a mark; `outer` are the marks around it. */
  open(mark: Mark, outer: readonly Mark[]): string
  /** Text after a mark. */
  close(mark: Mark, outer: readonly Mark[]): string
  /** Text at the beginning of each line inside of a mark; `isFirst` for the first one. */
  prefix(mark: Mark, isFirst: boolean): string
  /** Blocks have tags: no empty lines between them. */
  readonly hasBlocks?: true
  readonly lineBreak: string
}

type LinkMark = Extract<Mark, { kind: 'link' }>
const isBold = ({ kind }: Mark): boolean => kind === 'bold' || kind === 'heading'
const massMentions = ['everyone', 'here', 'channel', 'all'] as const
const beginnings = massMentions.flatMap((word) => Array.from(word, (_, end) => word.slice(0, end)))
/** Also a beginning of one at the end of a text: markup without a sign of its own can stand before the rest. */
const mentionsAll = new RegExp(`@(?=(?:${massMentions.join('|')})\\b|(?:${beginnings.join('|')})$)`, 'gi')
/** Keeps a text from notifying everybody. */
const withoutMassMention = (text: string): string => text.replaceAll(mentionsAll, '@\u200b')

function textPrefix(quote: string): DialectRules['prefix'] {
  return (mark, isFirst) => {
    if (mark.kind === 'quote') return quote
    if (mark.kind !== 'item') return ''
    return isFirst ? mark.bullet : ' '.repeat(mark.bullet.length)
  }
}
/** What dialects without links show. */
const address = ({ href, text }: LinkMark): string => (isLinkable(href) && !href.endsWith(text) ? ` (${href})` : '')

const plain: DialectRules = {
  escape: (text) => text,
  open: () => '',
  close: (mark) => (mark.kind === 'link' ? address(mark) : ''),
  prefix: textPrefix('> '),
  lineBreak: '\n',
}

/** Signs around text for dialects of one or two characters, such as `*bold*`. */
function signs(marks: { readonly bold: string; readonly italic: string; readonly strike: string }): DialectRules {
  const around = (mark: Mark, outer: readonly Mark[]): string => {
    switch (mark.kind) {
      case 'bold':
      case 'heading':
        return outer.some(isBold) ? '' : marks.bold
      case 'italic':
        return marks.italic
      case 'strike':
        return marks.strike
      case 'code':
        return '`'
      default:
        return ''
    }
  }
  return {
    ...plain,
    // A fence inside of a fence would end it.
    escape: (text, isCode) => (isCode ? text.replaceAll('```', '`\u200b``') : text),
    open: (mark, outer) => (mark.kind === 'code-block' ? '```\n' : around(mark, outer)),
    close(mark, outer) {
      if (mark.kind === 'code-block') return '\n```'
      return mark.kind === 'link' ? address(mark) : around(mark, outer)
    },
  }
}

const whatsapp = signs({ bold: '*', italic: '_', strike: '~' })
const slackSigns = signs({ bold: '*', italic: '_', strike: '~' })
const escapeSlack = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const slack: DialectRules = {
  ...slackSigns,
  escape: (text, isCode, isLineStart) => withoutMassMention(escapeSlack(slackSigns.escape(text, isCode, isLineStart))),
  open(mark, outer) {
    if (mark.kind !== 'link') return slackSigns.open(mark, outer)
    return isLinkable(mark.href) ? `<${escapeSlack(mark.href).replaceAll('|', '%7C')}|` : ''
  },
  close(mark, outer) {
    if (mark.kind !== 'link') return slackSigns.close(mark, outer)
    return isLinkable(mark.href) ? '>' : ''
  },
}

const markdownSigns = { bold: '**', italic: '*', strike: '~~' } as const
/** Escapes signs of emphasis; an underscore within a word is none. */
function escapeMarkdown(text: string, isLineStart: boolean): string {
  const escaped = text.replaceAll(/[\\*`~|[\]<]|(?<!\w)_|_(?!\w)/g, String.raw`\$&`)
  const start = isLineStart
    ? escaped.replace(/^(\d+)([.)])(?=\s|$)/, String.raw`$1\$2`).replace(/^[#>+-]/, String.raw`\$&`)
    : escaped
  return withoutMassMention(start)
}
const fenceOf = (ticks: number): string => '`'.repeat(Math.max(3, ticks + 1))
const markdown: DialectRules = {
  ...plain,
  escape: (text, isCode, isLineStart) => (isCode ? text : escapeMarkdown(text, isLineStart)),
  open(mark, outer) {
    switch (mark.kind) {
      case 'bold':
        return outer.some(isBold) ? '' : markdownSigns.bold
      case 'italic':
      case 'strike':
        return markdownSigns[mark.kind]
      case 'heading':
        return `${'#'.repeat(mark.level)} `
      case 'code':
        return inlineFence(mark.ticks)[0]
      case 'code-block':
        return `${fenceOf(mark.ticks)}${mark.language}\n`
      case 'link':
        return isLinkable(mark.href) && mark.href !== mark.text ? '[' : ''
      default:
        return ''
    }
  },
  close(mark, outer) {
    switch (mark.kind) {
      case 'code':
        return inlineFence(mark.ticks)[1]
      case 'code-block':
        return `\n${fenceOf(mark.ticks)}`
      case 'link':
        return isLinkable(mark.href) && mark.href !== mark.text
          ? `](${mark.href.replaceAll('(', '%28').replaceAll(')', '%29').replaceAll(' ', '%20')})`
          : ''
      case 'heading':
        return ''
      default:
        return markdown.open(mark, outer)
    }
  },
  prefix: (mark, isFirst) => textPrefix('> ')(mark.kind === 'item' ? markdownItem(mark.bullet) : mark, isFirst),
}
const markdownItem = (bullet: string): Mark => ({
  kind: 'item',
  bullet: bullet
    .replace('• ', '- ')
    .replace('☑ ', '- ☑ ')
    .replace('☐ ', '- ☐ ')
    .replace(/(\d\. )- /, '$1'),
})
function inlineFence(ticks: number): readonly [string, string] {
  const fence = '`'.repeat(ticks + 1)
  return ticks === 0 ? [fence, fence] : [`${fence} `, ` ${fence}`]
}
/** Discord shows three levels of headings. */
const discord: DialectRules = {
  ...markdown,
  open: (mark, outer) =>
    markdown.open(mark.kind === 'heading' ? { kind: 'heading', level: Math.min(mark.level, 3) } : mark, outer),
}

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
const tagNames = { bold: 'b', italic: 'i', strike: 's', code: 'code', quote: 'blockquote' } as const
/** The tags of a code block, with the language only if it is a plain word. */
function codeTags(language: string): readonly [string, string] {
  return /^[\w+#-]{1,32}$/.test(language)
    ? [`<pre><code class="language-${language}">`, '</code></pre>']
    : ['<pre><code>', '</code></pre>']
}
const telegram: DialectRules = {
  escape: (text) => escapeHtml(text),
  open(mark, outer) {
    switch (mark.kind) {
      case 'heading':
      case 'bold':
        return outer.some(isBold) ? '' : '<b>'
      // The platform nests no quotes.
      case 'quote':
        return outer.some(({ kind }) => kind === 'quote') ? '' : '<blockquote>'
      case 'italic':
      case 'strike':
      case 'code':
        return `<${tagNames[mark.kind]}>`
      case 'code-block':
        return codeTags(mark.language)[0]
      case 'link':
        return isLinkable(mark.href) ? `<a href="${escapeHtml(mark.href)}">` : ''
      default:
        return ''
    }
  },
  close(mark, outer) {
    if (mark.kind === 'code-block') return codeTags(mark.language)[1]
    if (mark.kind === 'link') return isLinkable(mark.href) ? '</a>' : ''
    const tag = telegram.open(mark, outer)
    return tag === '' ? '' : tag.replace('<', '</')
  },
  prefix: textPrefix(''),
  lineBreak: '\n',
}
const html: DialectRules = {
  escape: (text) => escapeHtml(text),
  open(mark) {
    switch (mark.kind) {
      case 'paragraph':
        return '<p>'
      case 'heading':
        return `<h${mark.level}>`
      case 'list':
        return mark.ordered ? (mark.start === 1 ? '<ol>' : `<ol start="${mark.start}">`) : '<ul>'
      case 'item':
        return `<li>${mark.bullet.includes('☑ ') ? '☑ ' : ''}${mark.bullet.includes('☐ ') ? '☐ ' : ''}`
      case 'code-block':
        return codeTags(mark.language)[0]
      case 'link':
        return isLinkable(mark.href) ? `<a href="${escapeHtml(mark.href)}">` : ''
      default:
        return `<${tagNames[mark.kind]}>`
    }
  },
  close(mark) {
    switch (mark.kind) {
      case 'paragraph':
        return '</p>'
      case 'heading':
        return `</h${mark.level}>`
      case 'list':
        return mark.ordered ? '</ol>' : '</ul>'
      case 'item':
        return '</li>'
      case 'code-block':
        return codeTags(mark.language)[1]
      case 'link':
        return isLinkable(mark.href) ? '</a>' : ''
      default:
        return `</${tagNames[mark.kind]}>`
    }
  },
  prefix: () => '',
  hasBlocks: true,
  lineBreak: '<br>\n',
}

export const dialects: Readonly<Record<Dialect, DialectRules>> = {
  plain,
  irc: plain,
  markdown,
  discord,
  slack,
  whatsapp,
  xmpp: signs({ bold: '*', italic: '_', strike: '~' }),
  'telegram-html': telegram,
  'matrix-html': html,
  'email-html': html,
}
