/** Characters that are invisible or change the direction of text, and so hide text from a reader. */
const invisible = new RegExp(
  [
    String.raw`[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0]`,
    String.raw`\u034f|[\u180b-\u180d]|[\ufe00-\ufe0f]`,
  ].join('|'),
  'g',
)
/** Tag characters: a second, invisible alphabet. */
const tags = /[\u{e0000}-\u{e007f}]/gu
const marks = /[\u0300-\u036f]/g

/** Letters that look like Latin ones. */
const alike: ReadonlyMap<string, string> = new Map(
  Object.entries({
    а: 'a',
    в: 'b',
    с: 'c',
    ԁ: 'd',
    е: 'e',
    ё: 'e',
    ғ: 'f',
    һ: 'h',
    н: 'h',
    і: 'i',
    ї: 'i',
    ј: 'j',
    к: 'k',
    ӏ: 'l',
    м: 'm',
    п: 'n',
    о: 'o',
    р: 'p',
    ԛ: 'q',
    г: 'r',
    ѕ: 's',
    т: 't',
    ѵ: 'v',
    ԝ: 'w',
    х: 'x',
    у: 'y',
    α: 'a',
    β: 'b',
    ε: 'e',
    η: 'n',
    ι: 'i',
    κ: 'k',
    μ: 'u',
    ν: 'v',
    ο: 'o',
    ρ: 'p',
    σ: 's',
    τ: 't',
    υ: 'u',
    χ: 'x',
    γ: 'y',
    ω: 'w',
    ɑ: 'a',
    ɡ: 'g',
    ı: 'i',
    ɩ: 'i',
    ɴ: 'n',
    օ: 'o',
    ո: 'n',
    ս: 'u',
    ꜱ: 's',
    ʀ: 'r',
    ʏ: 'y',
  }),
)
/** What each UTF-16 code stands for: itself, or the Latin letter that it looks like. */
const folds = new Uint16Array(0x10000).map((_, code) => code)
for (const [sign, letter] of alike) folds[sign.charCodeAt(0)] = letter.charCodeAt(0)
const CODES_AT_ONCE = 8192

export interface Normal {
  /** Lower-case ASCII where possible, one form of each character, nothing hidden. */
  readonly text: string
  /** Text hidden in tag characters, in plain letters. */
  readonly tagged: string
  /** Invisible characters that were removed. */
  readonly hidden: number
}

/** Maps text that reads the same to one form: compatibility forms, look-alikes, hidden characters, hyphenated words. */
export function normalise(text: string): Normal {
  // Nearly all text has nothing of this, and one test settles it.
  if (/^[\0-\x7f]*$/.test(text)) return { text: joined(text).toLowerCase(), tagged: '', hidden: 0 }
  let tagged = ''
  const untagged = text.replaceAll(tags, (sign) => {
    const code = (sign.codePointAt(0) ?? 0) - 0xe0000
    if (code >= 0x20 && code < 0x7f) tagged += String.fromCharCode(code)
    return ''
  })
  const shown = untagged.replaceAll(invisible, '')
  const folded = withLatinLetters(shown.normalize('NFKD').replaceAll(marks, '').toLowerCase())
  return { text: joined(folded), tagged: tagged.toLowerCase(), hidden: text.length - shown.length }
}
/**
 * One character becomes up to 18 by then. A pattern with a callback would hold an entry for each of them, and the
 * garbage collector would take most of the time.
 */
function withLatinLetters(text: string): string {
  const parts: string[] = []
  const codes = new Uint16Array(Math.min(text.length, CODES_AT_ONCE))
  for (let from = 0; from < text.length; from += CODES_AT_ONCE) {
    const length = Math.min(text.length - from, CODES_AT_ONCE)
    for (let at = 0; at < length; at++) codes[at] = folds[text.charCodeAt(from + at)] ?? 0
    parts.push(String.fromCharCode(...codes.subarray(0, length)))
  }
  return parts.join('')
}
/** An apostrophe is no end of a word either. */
function joined(text: string): string {
  const whole = text.includes('-') ? text.replaceAll(/-[ \t]{0,8}\r?\n[ \t]{0,8}/g, '') : text
  return whole.includes("'") || whole.includes('\u2019') ? whole.replaceAll(/['\u2019]/g, '') : whole
}
