import { Refusal } from 'svc/sdk'
import type { ApprovalForm, FormContent, FormField } from '../contract.ts'

const MAX_ANSWER_CHARS = 16_384

/**
 * What a person filled in, with the defaults of what they left out. Text is taken for a number, a yes or no and a list
 * with commas too: chats and command lines have nothing else. Throws `invalid_request` with a sentence for each field.
 */
export function checkContent({ fields }: ApprovalForm, given: Readonly<Record<string, unknown>>): FormContent {
  const problems = new Map<string, string>()
  const content: Record<string, FormContent[string]> = {}
  for (const name of Object.keys(given))
    if (!fields.some((field) => field.name === name)) problems.set(name, `is not a field of this form`)
  for (const field of fields) {
    const value = Object.hasOwn(given, field.name) ? given[field.name] : undefined
    // An empty text is what a person leaves who has nothing to say, except where it is a choice.
    const isMissing = value === undefined || value === null || (value === '' && field.kind !== 'choice')
    if (isMissing && field.default !== undefined) content[field.name] = field.default
    else if (isMissing && field.required) problems.set(field.name, 'is needed')
    else if (!isMissing) read(field, value, content, problems)
  }
  if (problems.size === 0) return content
  const listed = [...problems].map(([name, problem]) => `${name} ${problem}`)
  throw new Refusal('invalid_request', `content: ${listed.join('; ')}`, {
    details: { fields: Object.fromEntries(problems) },
  })
}

function read(
  field: FormField,
  value: unknown,
  content: Record<string, FormContent[string]>,
  problems: Map<string, string>,
): void {
  const result = readers[field.kind](value, field)
  if ('problem' in result) problems.set(field.name, result.problem)
  else content[field.name] = result.value
}

type Result = { readonly value: FormContent[string] } | { readonly problem: string }
const readers: Readonly<Record<FormField['kind'], (value: unknown, field: FormField) => Result>> = {
  text: readText,
  number: readNumber,
  integer: readNumber,
  boolean: readBoolean,
  choice: readChoice,
  choices: readChoices,
}

function readText(value: unknown, { format, minimum = 0, maximum = MAX_ANSWER_CHARS }: FormField): Result {
  if (typeof value !== 'string' || !value.isWellFormed()) return { problem: 'has to be text' }
  const { length } = [...value]
  if (length < minimum) return { problem: `needs at least ${minimum} characters` }
  if (length > Math.min(maximum, MAX_ANSWER_CHARS))
    return { problem: `can have at most ${Math.min(maximum, MAX_ANSWER_CHARS)} characters` }
  const known = format && formats[format]
  return known && !known.holds(value) ? { problem: `has to be ${known.is}` } : { value }
}

const isDate = (text: string): boolean => !Number.isNaN(Date.parse(text))
/** A day that does not exist, such as 30 February, is read as another one. */
const isDay = (text: string): boolean =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && isDate(text) && new Date(text).toISOString().startsWith(text)
const formats: Readonly<
  Record<NonNullable<FormField['format']>, { readonly is: string; readonly holds: (text: string) => boolean }>
> = {
  email: { is: 'an e-mail address', holds: (text) => /^[^\s@]{1,64}@[^\s@.]+(?:\.[^\s@.]+)*$/.test(text) },
  uri: { is: 'an address such as https://example.org/', holds: (text) => URL.canParse(text) },
  date: { is: 'a date such as 2026-11-30', holds: isDay },
  'date-time': {
    is: 'a date and time such as 2026-11-30T18:00:00Z',
    holds: (text) =>
      /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})$/i.test(text) &&
      isDay(text.slice(0, 10)) &&
      isDate(text),
  },
}

function readNumber(given: unknown, { kind, minimum = -Infinity, maximum = Infinity }: FormField): Result {
  const value = typeof given === 'string' && given.trim() !== '' ? Number(given) : given
  if (typeof value !== 'number' || !Number.isFinite(value)) return { problem: 'has to be a number' }
  if (kind === 'integer' && !Number.isInteger(value)) return { problem: 'has to be a whole number' }
  if (value < minimum) return { problem: `has to be ${minimum} or more` }
  return value > maximum ? { problem: `has to be ${maximum} or less` } : { value }
}

function readBoolean(given: unknown): Result {
  if (typeof given === 'boolean') return { value: given }
  const word = typeof given === 'string' ? given.trim().toLowerCase() : ''
  if (['true', 'yes', 'y', 'on', '1'].includes(word)) return { value: true }
  return ['false', 'no', 'n', 'off', '0'].includes(word) ? { value: false } : { problem: 'has to be true or false' }
}

const oneOf = ({ options = [] }: FormField): string => options.map(({ value }) => value).join(', ')
/** Its value, or the title that a person was shown. */
function findOption({ options = [] }: FormField, text: unknown): string | undefined {
  return (options.find(({ value }) => value === text) ?? options.find(({ title }) => title === text))?.value
}
function readChoice(given: unknown, field: FormField): Result {
  const value = findOption(field, given)
  return value === undefined ? { problem: `has to be one of ${oneOf(field)}` } : { value }
}
function readChoices(given: unknown, field: FormField): Result {
  const { minimum = 0, maximum = Infinity } = field
  const listed: unknown[] =
    typeof given === 'string' ? given.split(',').map((part) => part.trim()) : Array.isArray(given) ? given : [undefined]
  const values = listed.map((each) => findOption(field, each))
  if (values.includes(undefined)) return { problem: `has to be a list of ${oneOf(field)}` }
  const chosen = [...new Set(values.filter((each) => each !== undefined))]
  if (chosen.length < minimum) return { problem: `needs at least ${minimum} of ${oneOf(field)}` }
  return chosen.length > maximum ? { problem: `can have at most ${maximum} values` } : { value: chosen }
}
