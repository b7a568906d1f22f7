import sanitizeHtml from 'sanitize-html'
import { Refusal } from 'svc/sdk'

/**
 * HTML of an agent without anything that runs, is sent, leads elsewhere or is loaded. The frame that shows it forbids
 * the same a second time; this is for everybody else who shows it, and for what no policy forbids, such as a look-up of
 * a name.
 */
export function sanitizeCanvas(html: string): string {
  checkSize(html)
  return sanitizeHtml(html, {
    allowedTags: [...TEXT_TAGS, ...DRAWING_TAGS],
    allowedAttributes: {
      '*': [...ATTRIBUTES, ...DRAWING_ATTRIBUTES],
      img: ['src', 'alt'],
      ol: ['start', 'reversed', 'type'],
      td: ['colspan', 'rowspan', 'headers'],
      th: ['colspan', 'rowspan', 'headers', 'scope'],
      col: ['span'],
      colgroup: ['span'],
      details: ['open'],
      time: ['datetime'],
      meter: ['value', 'min', 'max', 'low', 'high', 'optimum'],
      progress: ['value', 'max'],
    },
    allowedSchemes: [],
    allowedSchemesByTag: { img: ['data'] },
    allowProtocolRelative: false,
    // Styles are checked below.
    allowVulnerableTags: true,
    parseStyleAttributes: false,
    // Their text is no text for a reader.
    nonTextTags: [
      'script',
      'textarea',
      'option',
      'noscript',
      'template',
      'title',
      'iframe',
      'object',
      'xmp',
      'noembed',
    ],
    nestingLimit: MAX_NESTING,
    transformTags: { '*': (tagName, attribs) => ({ tagName, attribs: harmless(attribs) }) },
    exclusiveFilter: ({ tag, attribs, text }) =>
      (tag === 'style' && !isHarmlessStyle(text)) || (tag === 'img' && !PICTURE.test(attribs['src'] ?? '')),
  }).trim()
}

/** What it takes grows with the square of the tags that are open, and of the attributes of one. */
function checkSize(html: string): void {
  let tags = 0
  for (const [tag] of html.matchAll(/<[^<>]*/g)) {
    const attributes = tag.replaceAll(/"[^"]*"|'[^']*'/g, '').split(/[\s/]+/).length
    if (attributes > MAX_ATTRIBUTES)
      throw new Refusal('invalid_request', `html: a tag has more than ${MAX_ATTRIBUTES} attributes`)
    if (++tags > MAX_TAGS) throw new Refusal('invalid_request', `html: has more than ${MAX_TAGS} tags`)
  }
}

/** The text of a canvas, for those who can show nothing else. */
export function canvasText(html: string): string {
  const blocks = html.replaceAll(/<\/?(?:p|div|h\d|li|tr|section|article|table|ul|ol|br|pre)\b[^>]*>/gi, '\n')
  return sanitizeHtml(blocks.replaceAll(/<\/t[dh]>/gi, ' '), {
    allowedTags: [],
    allowedAttributes: {},
    nonTextTags: ['style', 'script', 'svg', 'title'],
  })
    .replaceAll(/&(lt|gt|quot|amp);/g, (_, name: string) => CHARACTERS[name] ?? '')
    .replaceAll(/[^\S\n]+/g, ' ')
    .replaceAll(/\s*\n\s*/g, '\n')
    .trim()
}

const CHARACTERS: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&' }
const MAX_NESTING = 100
/** Opening and closing ones. */
const MAX_TAGS = 10_000
const MAX_ATTRIBUTES = 100
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=\s]+$/i

const TEXT_TAGS = (
  'a abbr address article aside b bdi bdo blockquote br caption center cite code col colgroup dd del details dfn div dl ' +
  'dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup hr i img ins kbd li main mark meter nav ol p pre ' +
  'progress q rp rt ruby s samp section small span strong style sub summary sup table tbody td tfoot th thead time tr u ' +
  'ul var wbr'
).split(' ')
/** In the letters of their standard and in lower case: parsers differ, and a browser knows both. */
const DRAWING_TAGS =
  'svg g path rect circle ellipse line polyline polygon text tspan defs lineargradient linearGradient radialgradient radialGradient stop clippath clipPath'.split(
    ' ',
  )
const ATTRIBUTES = [
  'class',
  'id',
  'style',
  'title',
  'lang',
  'dir',
  'role',
  'aria-*',
  'width',
  'height',
  'align',
  'valign',
  'border',
]
const DRAWING_ATTRIBUTES = (
  'viewbox viewBox preserveaspectratio preserveAspectRatio x y x1 y1 x2 y2 cx cy r rx ry d points dx dy transform fill fill-opacity fill-rule ' +
  'stroke stroke-width stroke-dasharray stroke-linecap stroke-linejoin stroke-opacity opacity font-size font-family ' +
  'font-weight text-anchor dominant-baseline offset stop-color stop-opacity gradientunits gradientUnits gradienttransform ' +
  'gradientTransform clip-path'
).split(' ')

function harmless(attribs: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(attribs).filter(([name, value]) => name === 'src' || isHarmlessStyle(value)))
}

/** Whether a style loads nothing, and is nothing but a style. Pictures may be part of it, and parts of the drawing. */
function isHarmlessStyle(css: string): boolean {
  // What looks like a comment may be in a string, where it hides nothing from a browser.
  const unescaped = unescapeCss(css)
  return [unescaped, unescaped.replaceAll(/\/\*[\s\S]*?(?:\*\/|$)/g, '')].every(loadsNothing)
}
function loadsNothing(css: string): boolean {
  const plain = css
    .replaceAll(/url\(\s*(["']?)data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=\s]+\1\s*\)/gi, '')
    .replaceAll(/url\(\s*(["']?)#[\w-]+\1\s*\)/gi, '')
  return !/url\s*\(|@import|@namespace|@font-face|image-set|(?:image|src|expression|element)\s*\(|</i.test(plain)
}
/** With escapes as what they stand for. */
function unescapeCss(css: string): string {
  return css.replaceAll(
    /\\(?:([0-9a-f]{1,6})\s?|([^\n]))/gi,
    (_, hex: string | undefined, character: string | undefined) =>
      hex === undefined ? (character ?? '') : String.fromCodePoint(Math.min(parseInt(hex, 16), 0x10ffff)),
  )
}
