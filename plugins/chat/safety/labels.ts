import type { EntryPoint } from '../../journal/contract.ts'
import { LABELS } from '../../sessions/contract.ts'
import type { Label } from '../../sessions/contract.ts'

export type { Label }

/** The labels of some text, each with where it came from first, such as "the answer of web_fetch". */
export type Carried = ReadonlyMap<Label, string>
/** The parts of a message that the guard reads: its texts do not matter. */
export interface Labelled {
  readonly blocks: readonly LabelledBlock[]
}
interface LabelledBlock {
  readonly type: string
  readonly labels?: readonly string[] | undefined
  readonly tool?: string | undefined
}

/**
 * The labels of the model's next words. A model mixes all that it reads, so its words carry every label in its window.
 * A summary keeps the labels of the messages that it replaces, so compaction clears none.
 */
export function carriedBy(messages: readonly Labelled[]): Carried {
  const carried = new Map<Label, string>()
  for (const { blocks } of messages) {
    for (const block of blocks) if (block.labels !== undefined) addLabels(carried, block, block.labels)
  }
  return carried
}
function addLabels(carried: Map<Label, string>, block: LabelledBlock, labels: readonly string[]): void {
  for (const label of labels) {
    if (!isLabel(label) || carried.has(label)) continue
    carried.set(label, block.type === 'result' ? `the answer of ${block.tool ?? 'a tool'}` : SOURCES[label])
  }
}
/** Where a label comes from, in words for a person. */
export const SOURCES: Readonly<Record<Label, string>> = {
  ExternalNetwork: 'text from the network',
  UserInput: 'a message',
  Pii: 'personal data',
  Secret: 'a secret',
  UntrustedAgent: 'a message of another agent',
}
const known: ReadonlySet<string> = new Set(LABELS)
export const isLabel = (label: string): label is Label => known.has(label)

/** All labels of several texts put together. */
export function union(...parts: readonly Carried[]): Carried {
  const all = new Map<Label, string>()
  for (const part of parts) for (const [label, source] of part) if (!all.has(label)) all.set(label, source)
  return all
}

/** Labels of one text, all from the same source. */
export function labelled(labels: readonly Label[], source: string): Carried {
  return new Map(labels.map((label) => [label, source]))
}

/** Labels of text by its entry point. A schedule's or a workflow's text is the operator's own. */
const ENTRY_POINT_LABELS: Readonly<Partial<Record<EntryPoint, readonly Label[]>>> = {
  rest: ['UserInput'],
  sse: ['UserInput'],
  websocket: ['UserInput'],
  openai: ['UserInput'],
  cli: ['UserInput'],
  channel: ['UserInput'],
  hook: ['UserInput'],
  trigger: ['UserInput'],
  task: ['UserInput'],
  agent: ['UntrustedAgent'],
  a2a: ['UntrustedAgent'],
  mcp: ['UserInput'],
  peer: ['UntrustedAgent'],
}

/** The labels of a message: those of its entry point, those it was given, and personal data. */
export function labelsOfMessage(
  entryPoint: EntryPoint,
  text: string,
  given: readonly Label[],
  scope: PersonalData,
): readonly Label[] {
  const labels = new Set<Label>([...(ENTRY_POINT_LABELS[entryPoint] ?? []), ...given])
  if (holdsPersonalData(text, scope)) labels.add('Pii')
  return [...labels]
}

/**
 * What counts as personal data: `identifiers` are numbers with a checksum, `contacts` adds addresses and telephone
 * numbers.
 */
export type PersonalData = 'off' | 'identifiers' | 'contacts'

// All bounded, so that none takes longer than the text is long.
const CARD = /(?<![\d.])[2-6]\d{3}(?:[ -]?\d){9,15}(?![\d.])/g
const IBAN = /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b/g
const SOCIAL_SECURITY = /\b(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}\b/
const EMAIL = /[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}/
const TELEPHONE = /(?<![\w+])\+\d(?:[ ()./-]{0,2}\d){7,14}(?!\d)/
/** Anything of the above has one of these. */
const CANDIDATE = /\d{2}[ -]?\d{2}|@|\+\d/

/**
 * Whether a text contains personal data (the label `Pii` of security facts 1.2). Decision: it looks only for what a
 * checksum or a form can verify, because each match needs a person's approval before the agent may reach the network.
 * It does not find names and postal addresses.
 */
export function holdsPersonalData(text: string, scope: PersonalData): boolean {
  if (scope === 'off' || !CANDIDATE.test(text)) return false
  if (SOCIAL_SECURITY.test(text)) return true
  for (const [number] of text.matchAll(CARD)) if (isCard(number.replace(/\D/g, ''))) return true
  for (const [account] of text.matchAll(IBAN)) if (isAccount(account.replaceAll(' ', ''))) return true
  return scope === 'contacts' && (EMAIL.test(text) || TELEPHONE.test(text))
}

/** The prefixes and lengths of card numbers in use. */
const CARD_NUMBERS: readonly RegExp[] = [
  /^4(?:\d{12}|\d{15}|\d{18})$/,
  /^5[1-5]\d{14}$/,
  /^2(?:2[2-9]|[3-6]\d|7[01])\d{13}$/,
  /^3[47]\d{13}$/,
  /^3(?:0[0-5]|[68]\d)\d{11}$/,
  /^6(?:011|5\d\d)\d{12}$/,
]

/** Whether digits have the form and the check digit of a card number. */
function isCard(digits: string): boolean {
  if (!CARD_NUMBERS.some((pattern) => pattern.test(digits))) return false
  let sum = 0
  for (let at = digits.length - 1, second = false; at >= 0; at--, second = !second) {
    const digit = Number(digits[at]) * (second ? 2 : 1)
    sum += digit > 9 ? digit - 9 : digit
  }
  return sum % 10 === 0
}

/** ISO 13616: the rest of the number, moved and read as digits, by 97. */
function isAccount(account: string): boolean {
  if (account.length < 15 || account.length > 34) return false
  let rest = 0
  for (const character of account.slice(4) + account.slice(0, 4))
    rest = Number(`${rest}${/\d/.test(character) ? character : character.charCodeAt(0) - 55}`) % 97
  return rest === 1
}
