import { decodeHTML } from 'entities'

const opening = '<think>'
const closing = '</think>'

/** The text without what a model thought aloud; an unfinished thought at the end is left out too. */
export function withoutThoughts(text: string): string {
  if (!text.includes(opening)) return text
  let kept = ''
  let from = 0
  for (let start = text.indexOf(opening); start !== -1; start = text.indexOf(opening, from)) {
    kept += text.slice(from, start)
    const end = text.indexOf(closing, start)
    if (end === -1) return kept.trim()
    from = end + closing.length
  }
  return (kept + text.slice(from)).trim()
}

/** References such as `&amp;`, which Markdown resolves outside of code. */
export function decodeReferences(text: string): string {
  return text.includes('&') ? decodeHTML(text) : text
}

const address = /^(?:https?:\/\/|mailto:|tg:\/\/)/i
/** Whether a link may be shown as one; others are shown as text. */
export function isLinkable(href: string): boolean {
  return address.test(href)
}
