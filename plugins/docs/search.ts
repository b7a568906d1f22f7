import { escapeHtml } from './escape.ts'
import { anchorMaker, titleOf } from './markdown.ts'

const MAX_FOUND = 40
const AROUND = 110

export interface Found {
  readonly title: string
  readonly url: string
  /** HTML: the words are marked. */
  readonly excerpt: string
}
interface Section {
  readonly heading: string
  readonly anchor: string
  readonly text: string
}

/** The sections that have all words: first those with more of them in their heading or the title of their page. */
export function searchPages(
  pages: readonly { readonly url: string; readonly text: string }[],
  words: string,
): readonly Found[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
  return pages
    .flatMap(({ url, text }) => {
      const title = titleOf(text)
      return sectionsOf(text).flatMap((section) => {
        const whole = `${title} ${section.heading} ${section.text}`.toLowerCase()
        if (!wanted.every((word) => whole.includes(word))) return []
        const isIn = (place: string): number => wanted.filter((word) => place.toLowerCase().includes(word)).length
        return [{ title, url, section, score: 2 * isIn(section.heading) + isIn(title) }]
      })
    })
    .toSorted((one, other) => other.score - one.score)
    .slice(0, MAX_FOUND)
    .map(({ title, url, section: { heading, anchor, text } }) => ({
      title: heading === title ? title : `${title}: ${heading}`,
      url: `${url}#${anchor}`,
      excerpt: excerptOf(text, wanted),
    }))
}

function sectionsOf(page: string): readonly Section[] {
  const anchorOf = anchorMaker()
  const sections: { heading: string; anchor: string; lines: string[] }[] = []
  let isCode = false
  for (const line of page.split('\n')) {
    if (/^\s*(?:```|~~~)/.test(line)) isCode = !isCode
    const heading = isCode ? undefined : /^#{1,6} (.+)$/.exec(line)?.[1]
    if (heading === undefined) sections.at(-1)?.lines.push(line)
    else sections.push({ heading: heading.replaceAll('`', ''), anchor: anchorOf(heading), lines: [] })
  }
  return sections.map(({ lines, ...section }) => ({ ...section, text: lines.join(' ') }))
}

/** What is around the first of the words, without the marks of Markdown. */
function excerptOf(text: string, words: readonly string[]): string {
  const plain = text
    .replaceAll(/\]\([^)]*\)/g, '')
    .replaceAll(/[`*[\]|]|```\w*|-{3,}/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
  const at = Math.max(0, Math.min(...words.map((word) => plain.toLowerCase().indexOf(word)).filter((one) => one >= 0)))
  const from = Number.isFinite(at) ? Math.max(0, at - AROUND) : 0
  const cut = plain.slice(from, from + 2 * AROUND)
  const pattern = new RegExp(`(${words.map((word) => RegExp.escape(word)).join('|')})`, 'gi')
  const marked = cut
    .split(pattern)
    .map((part, index) => (index % 2 === 1 ? `<mark>${escapeHtml(part)}</mark>` : escapeHtml(part)))
  return `${from > 0 ? '… ' : ''}${marked.join('')}${from + cut.length < plain.length ? ' …' : ''}`
}
