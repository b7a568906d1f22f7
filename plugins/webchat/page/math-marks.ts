import type { TokenizerAndRendererExtension } from 'marked'
import { escapeHtml } from './escape-html.ts'

// A dollar sign is money more often than mathematics: an inline formula begins and ends beside a character that is no
// blank, and no digit follows it. Every search ends after a few thousand characters, however long the text is.

const block = /^ {0,3}(?:\$\$([^$]{1,5000})\$\$|\\\[([\s\S]{1,5000}?)\\\])[ \t]*(?:\n|$)/
const inline =
  /^(?:\$\$([^$]{1,2000})\$\$|\\\[([\s\S]{1,2000}?)\\\]|\\\(([\s\S]{1,2000}?)\\\)|\$(?![\s$])([^$\n]{1,500})(?<!\s)\$(?!\d))/
/** How far a line of text is searched for the next formula. */
const MAX_SEARCH = 4000

/** A formula with lines of its own. */
export const blockMath: TokenizerAndRendererExtension = {
  name: 'blockMath',
  level: 'block',
  tokenizer(source) {
    const [raw, dollars, brackets] = block.exec(source.slice(0, 5100)) ?? []
    const text = (dollars ?? brackets)?.trim()
    return raw === undefined || !text ? undefined : { type: 'blockMath', raw, text }
  },
  renderer: ({ text }) => `<pre data-math="block"><code>${escapeHtml(String(text))}</code></pre>`,
}

/** A formula within a sentence. */
export const inlineMath: TokenizerAndRendererExtension = {
  name: 'inlineMath',
  level: 'inline',
  start(source) {
    const at = source.slice(0, MAX_SEARCH).search(/\$|\\[([]/)
    return at === -1 ? undefined : at
  },
  tokenizer(source) {
    const [raw, dollars, brackets, parentheses, dollar] = inline.exec(source.slice(0, 2100)) ?? []
    const text = (dollars ?? brackets ?? parentheses ?? dollar)?.trim()
    if (raw === undefined || !text) return undefined
    return { type: 'inlineMath', raw, text, display: dollars !== undefined || brackets !== undefined }
  },
  renderer: ({ text, display }) =>
    `<code data-math="${display === true ? 'block' : 'inline'}">${escapeHtml(String(text))}</code>`,
}
