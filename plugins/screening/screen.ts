import type { FindingLevel, ScreeningFinding, ScreeningResult } from './contract.ts'
import { decoded } from './decode.ts'
import { normalise } from './normal.ts'
import { markers, rules } from './rules.ts'
import type { Rule } from './rules.ts'
import { MOST_KNOWN, Scanner } from './words.ts'
import type { Known } from './words.ts'

/** Bytes from which a text for a prompt is told as long. */
const LONG_BYTES = 50_000
/** Characters that are looked at; what comes after them is told. */
const MOST_CHARS = 4_194_304
const MOST_FINDINGS = 20
const GAP = 4
const EXCERPT = 120
const levels: readonly FindingLevel[] = ['info', 'warning', 'critical']

/**
 * Looks for text that speaks to a model instead of about something. Takes time in proportion to the length of the text (1 MiB in some ten
 * milliseconds): words are compared, and no pattern can go back over what it has read. It finds what is known and misses the rest.
 */
export function screen(text: string): ScreeningResult {
  const seen = text.slice(0, MOST_CHARS)
  const found: ScreeningFinding[] = []
  const normal = normalise(seen)
  look(normal.text, '', found)
  if (normal.tagged !== '') look(normal.tagged, ', in letters nobody sees', found)
  const inside = decoded(seen)
  if (inside !== '') look(normalise(inside).text, ', encoded', found)
  if (normal.tagged !== '')
    add(found, { level: 'warning', rule: 'hidden text', excerpt: `${normal.tagged.length} letters in tag characters` })
  else if (normal.hidden > 8)
    add(found, { level: 'warning', rule: 'hidden text', excerpt: `${normal.hidden} characters nobody sees` })
  if (hasImage(seen))
    add(found, { level: 'warning', rule: 'an image that carries data away', excerpt: 'a Markdown image with a query' })
  if (text.length > seen.length)
    add(found, {
      level: 'info',
      rule: 'not all of it was looked at',
      excerpt: `${text.length - seen.length} more characters`,
    })
  else if (seen.length > LONG_BYTES || (seen.length * 3 > LONG_BYTES && Buffer.byteLength(seen) > LONG_BYTES))
    add(found, { level: 'info', rule: 'a long text', excerpt: `${seen.length} characters` })
  const level = found.reduce((highest, each) => Math.max(highest, levels.indexOf(each.level)), -1)
  return { level: levels[level] ?? 'none', findings: found }
}

function look(text: string, where: string, found: ScreeningFinding[]): void {
  const { known, signs, spaced, roles } = scanner.scan(text)
  for (const sign of signs)
    add(found, { level: 'critical', rule: `${names.get(sign) ?? 'a sign of a prompt'}${where}`, excerpt: sign })
  for (const role of roles) add(found, { level: 'warning', rule: `a line of a chat${where}`, excerpt: role })
  if (known.length > MOST_KNOWN)
    add(found, {
      level: 'warning',
      rule: `nothing but words of instructions${where}`,
      excerpt: `more than ${MOST_KNOWN}`,
    })
  for (const [at, first] of known.entries()) {
    const rulesHere = byFirst.get(first.word)
    if (!rulesHere) continue
    for (const rule of rulesHere) {
      const last = lastOf(known, at, rule)
      if (!last) continue
      add(found, {
        level: rule.level,
        rule: `${rule.name}${where}`,
        excerpt: text.slice(first.from, Math.min(last.to, first.from + EXCERPT)).replaceAll(/[^a-z0-9]+/g, ' '),
      })
      // Rules stand from the most to the least that they say.
      break
    }
    if (found.length >= MOST_FINDINGS) return
  }
  for (const run of spaced) {
    const sign = squeezed.find((each) => run.includes(each))
    if (sign !== undefined)
      add(found, { level: 'critical', rule: `override of instructions${where}, letter by letter`, excerpt: sign })
  }
}

const byFirst: ReadonlyMap<string, readonly Rule[]> = (() => {
  const map = new Map<string, Rule[]>()
  for (const rule of rules) for (const word of rule.groups[0] ?? []) map.set(word, [...(map.get(word) ?? []), rule])
  return map
})()
const names: ReadonlyMap<string, string> = new Map(markers.map(([name, sign]) => [sign, name]))
const scanner = new Scanner(
  new Set(rules.flatMap(({ groups }) => groups.flatMap((group) => [...group]))),
  new Set(byFirst.keys()),
  markers.map(([, sign]) => sign),
)

/** The word of the last group, when all groups stand behind the first word in order, each within a few words of the one before. */
function lastOf(known: readonly Known[], from: number, { groups, within = GAP }: Rule): Known | undefined {
  let at = from
  for (let group = 1; group < groups.length; group++) {
    const reach = (known[at]?.at ?? 0) + within
    let next = at + 1
    while ((known[next]?.at ?? Infinity) <= reach && !groups[group]?.has(known[next]?.word ?? '')) next++
    if ((known[next]?.at ?? Infinity) > reach) return undefined
    at = next
  }
  return known[at]
}

const squeezed = ['ignore', 'disregard', 'forget', 'override'].flatMap((verb) =>
  [
    'previous',
    'allprevious',
    'priori',
    'allprior',
    'above',
    'yourinstructions',
    'allinstructions',
    'theprevious',
    'theabove',
  ].map((rest) => verb + rest),
)

/** A Markdown image whose address has a query: shown, it tells its server what the query says. */
function hasImage(text: string): boolean {
  let at = text.indexOf('![')
  for (let looked = 0; at >= 0 && looked < 1000; looked++) {
    if (/^!\[[^\]\n]{0,200}\]\(\s{0,4}https?:\/\/[^)\s?]{1,300}\?[^)\s=]{1,100}=/.test(text.slice(at, at + 700)))
      return true
    at = text.indexOf('![', at + 2)
  }
  return false
}

function add(found: ScreeningFinding[], finding: ScreeningFinding): void {
  if (
    found.length < MOST_FINDINGS &&
    !found.some(({ rule, excerpt }) => rule === finding.rule && excerpt === finding.excerpt)
  )
    found.push(finding)
}
