import type { FindingLevel, ScreeningFinding, ScreeningResult } from './contract.ts'
import { decoded } from './decode.ts'
import { normalise } from './normal.ts'
import { markers, rules } from './rules.ts'
import type { Rule } from './rules.ts'
import { MAX_RULE_WORDS, Scanner } from './words.ts'
import type { RuleWord } from './words.ts'

/** A prompt text of more bytes is reported as long. */
const LONG_BYTES = 50_000
/** Characters that are screened; the result reports how many follow them. */
const MAX_CHARS = 4_194_304
const MAX_FINDINGS = 20
/** The default distance between two words of a rule. */
const WORD_DISTANCE = 4
const EXCERPT_LENGTH = 120
const levels: readonly FindingLevel[] = ['info', 'warning', 'critical']

/**
 * Finds text that addresses a model. Takes time in proportion to the length of the text (1 MiB in some ten
 * milliseconds): it compares words, and no pattern backtracks. It finds known phrases and misses the rest.
 */
export function screen(text: string): ScreeningResult {
  const screened = text.slice(0, MAX_CHARS)
  const found: ScreeningFinding[] = []
  const normal = normalise(screened)
  applyRules(normal.text, '', found)
  if (normal.tagged !== '') applyRules(normal.tagged, ', in invisible letters', found)
  const inside = decoded(screened)
  if (inside !== '') applyRules(normalise(inside).text, ', encoded', found)
  if (normal.tagged !== '')
    add(found, { level: 'warning', rule: 'hidden text', excerpt: `${normal.tagged.length} letters in tag characters` })
  else if (normal.hidden > 8)
    add(found, { level: 'warning', rule: 'hidden text', excerpt: `${normal.hidden} invisible characters` })
  if (hasImage(screened))
    add(found, { level: 'warning', rule: 'an image that carries data away', excerpt: 'a Markdown image with a query' })
  if (text.length > screened.length)
    add(found, {
      level: 'info',
      rule: 'the text was not screened completely',
      excerpt: `${text.length - screened.length} more characters`,
    })
  else if (isLong(screened))
    add(found, { level: 'info', rule: 'a long text', excerpt: `${screened.length} characters` })
  const level = found.reduce((highest, each) => Math.max(highest, levels.indexOf(each.level)), -1)
  return { level: levels[level] ?? 'none', findings: found }
}

function isLong(text: string): boolean {
  return text.length > LONG_BYTES || (text.length * 3 > LONG_BYTES && Buffer.byteLength(text) > LONG_BYTES)
}

/** `where` is appended to the name of each finding. */
function applyRules(text: string, where: string, found: ScreeningFinding[]): void {
  const scanned = scanner.scan(text)
  const { ruleWords } = scanned
  for (const marker of scanned.markers)
    add(found, {
      level: 'critical',
      rule: `${markerNames.get(marker) ?? 'a sign of a prompt'}${where}`,
      excerpt: marker,
    })
  for (const role of scanned.roles) add(found, { level: 'warning', rule: `a line of a chat${where}`, excerpt: role })
  if (ruleWords.length > MAX_RULE_WORDS)
    add(found, {
      level: 'warning',
      rule: `nothing but words of instructions${where}`,
      excerpt: `more than ${MAX_RULE_WORDS}`,
    })
  for (const [at, first] of ruleWords.entries()) {
    const match = firstMatch(ruleWords, at)
    if (!match) continue
    const { rule, last } = match
    add(found, {
      level: rule.level,
      rule: `${rule.name}${where}`,
      excerpt: text.slice(first.from, Math.min(last.to, first.from + EXCERPT_LENGTH)).replaceAll(/[^a-z0-9]+/g, ' '),
    })
    if (found.length >= MAX_FINDINGS) return
  }
  addSpacedLetters(scanned.spacedLetters, where, found)
}

/** The most severe rule that begins with this word and matches: rules are sorted by severity. */
function firstMatch(
  ruleWords: readonly RuleWord[],
  at: number,
): { readonly rule: Rule; readonly last: RuleWord } | undefined {
  for (const rule of rulesByFirstWord.get(ruleWords[at]?.word ?? '') ?? []) {
    const last = matchRule(ruleWords, at, rule)
    if (last) return { rule, last }
  }
  return undefined
}

function addSpacedLetters(runs: readonly string[], where: string, found: ScreeningFinding[]): void {
  for (const run of runs) {
    const phrase = joinedPhrases.find((each) => run.includes(each))
    if (phrase !== undefined)
      add(found, { level: 'critical', rule: `override of instructions${where}, letter by letter`, excerpt: phrase })
  }
}

const rulesByFirstWord: ReadonlyMap<string, readonly Rule[]> = (() => {
  const map = new Map<string, Rule[]>()
  for (const rule of rules) for (const word of rule.groups[0] ?? []) map.set(word, [...(map.get(word) ?? []), rule])
  return map
})()
const markerNames: ReadonlyMap<string, string> = new Map(markers.map(([name, marker]) => [marker, name]))
const scanner = new Scanner(
  new Set(rules.flatMap(({ groups }) => groups.flatMap((group) => [...group]))),
  new Set(rulesByFirstWord.keys()),
  markers.map(([, marker]) => marker),
)

/** Matches the groups of a rule in order, each within a few words of the one before; returns the last word. */
function matchRule(
  ruleWords: readonly RuleWord[],
  from: number,
  { groups, within = WORD_DISTANCE }: Rule,
): RuleWord | undefined {
  let at = from
  for (let group = 1; group < groups.length; group++) {
    const limit = (ruleWords[at]?.index ?? 0) + within
    let next = at + 1
    while ((ruleWords[next]?.index ?? Infinity) <= limit && !groups[group]?.has(ruleWords[next]?.word ?? '')) next++
    if ((ruleWords[next]?.index ?? Infinity) > limit) return undefined
    at = next
  }
  return ruleWords[at]
}

/** Phrases without spaces, as text in spaced letters reads. */
const joinedPhrases = ['ignore', 'disregard', 'forget', 'override'].flatMap((verb) =>
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

/** A Markdown image with a query in its URL: rendering it sends the query to its server. */
function hasImage(text: string): boolean {
  let at = text.indexOf('![')
  for (let attempts = 0; at >= 0 && attempts < 1000; attempts++) {
    if (/^!\[[^\]\n]{0,200}\]\(\s{0,4}https?:\/\/[^)\s?]{1,300}\?[^)\s=]{1,100}=/.test(text.slice(at, at + 700)))
      return true
    at = text.indexOf('![', at + 2)
  }
  return false
}

function add(found: ScreeningFinding[], finding: ScreeningFinding): void {
  if (
    found.length < MAX_FINDINGS &&
    !found.some(({ rule, excerpt }) => rule === finding.rule && excerpt === finding.excerpt)
  )
    found.push(finding)
}
