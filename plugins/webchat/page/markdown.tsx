import DOMPurify from 'dompurify'
import { Marked } from 'marked'
import type { Token } from 'marked'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { dress } from './rich-text.ts'

// Two walls. The renderer makes no raw HTML, no foreign image and no odd link in the first place; the sanitiser then lets
// through only what such output can hold. An answer may carry anything a web page or a file told the model to say.

const harmlessTag = /^<\/?(?:b|br|code|del|em|i|ins|kbd|mark|s|strong|sub|sup|u)\s*\/?>$/i
const embedded = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=\s]+$/i

const marked = new Marked({
  gfm: true,
  breaks: true,
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
    // Loading a foreign image would tell its server what the agent was made to put into the address.
    image({ href, text }) {
      if (embedded.test(href)) return `<img src="${escapeHtml(href)}" alt="${escapeHtml(text)}">`
      const url = linkTarget(href)
      const label = escapeHtml(text === '' ? 'Image' : `Image: ${text}`)
      return url
        ? `<a href="${escapeHtml(url.href)}" title="${escapeHtml(url.href)}">${label} (${escapeHtml(url.host)}, not loaded)</a>`
        : label
    },
  },
})

const allowed = {
  ALLOWED_TAGS: [
    'a',
    'b',
    'blockquote',
    'br',
    'code',
    'del',
    'em',
    'h3',
    'h4',
    'h5',
    'h6',
    'hr',
    'i',
    'img',
    'input',
    'ins',
    'kbd',
    'li',
    'mark',
    'ol',
    'p',
    'pre',
    's',
    'strong',
    'sub',
    'sup',
    'table',
    'tbody',
    'td',
    'th',
    'thead',
    'tr',
    'u',
    'ul',
  ],
  ALLOWED_ATTR: ['align', 'alt', 'checked', 'data-language', 'disabled', 'href', 'src', 'start', 'title', 'type'],
  // Checked against the pattern below are only the attributes that hold an address.
  ADD_URI_SAFE_ATTR: ['align', 'checked', 'data-language', 'disabled', 'start', 'type'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/(?:png|jpeg|gif|webp|avif);base64,)/i,
  RETURN_DOM_FRAGMENT: true as const,
}

/** Text of an agent, drawn as Markdown. While it grows only its last block is drawn again. */
export function Markdown({ text, growing }: { readonly text: string; readonly growing: boolean }) {
  const blocks = useMemo(() => marked.lexer(text).filter(({ type }) => type !== 'space'), [text])
  return (
    <div class={growing ? 'prose growing' : 'prose'}>
      {blocks.map((block, at) => (
        <Block key={at} block={block} />
      ))}
    </div>
  )
}

function Block({ block }: { readonly block: Token }) {
  const place = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const fragment = DOMPurify.sanitize(marked.parser([block]), allowed)
    dress(fragment)
    place.current?.replaceChildren(fragment)
  }, [block.raw])
  return <div ref={place} class="block" />
}

function linkTarget(href: string): URL | undefined {
  if (!URL.canParse(href)) return undefined
  const url = new URL(href)
  return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : undefined
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
