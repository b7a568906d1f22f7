import { createInterface } from 'node:readline/promises'
import { commandLine, escapeControls, exits, Failure } from 'svc/cli'
import type { Approval, FormAnswers, FormField } from './approval.ts'

/** One field as a line: its name, what it is for and what it can be. */
export function describeField(field: FormField): string {
  const { name, title, description, required, options } = field
  const about = [title === name ? '' : title, description].filter((text) => text !== '').join('. ')
  const values = options?.map(({ value, title: shown }) => (value === shown ? value : `${value} (${shown})`)).join(', ')
  const facts = [
    kindOf(field),
    rangeOf(field),
    ...(values === undefined ? [] : [values]),
    ...(field.default === undefined ? [] : [`default ${textOf(field.default)}`]),
    ...(required ? [] : ['may be left out']),
  ].filter((text) => text !== '')
  return escapeControls(`${name}${about === '' ? '' : `: ${about}`} [${facts.join('; ')}]`)
}
const KINDS: Readonly<Record<string, string>> = {
  integer: 'whole number',
  boolean: 'yes or no',
  choice: 'one of',
  choices: 'some of, with commas between',
}
const kindOf = ({ kind, format }: FormField): string => format ?? KINDS[kind] ?? kind
function rangeOf({ kind, minimum, maximum }: FormField): string {
  const unit = kind === 'text' ? ' characters' : ''
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}${unit}`
  if (minimum !== undefined) return `at least ${minimum}${unit}`
  return maximum === undefined ? '' : `at most ${maximum}${unit}`
}
const textOf = (value: unknown): string =>
  Array.isArray(value) ? value.join(', ') : typeof value === 'string' ? value : JSON.stringify(value)

/** Values of `--set name=value`. Throws a `Failure` for one without `=`. */
export function readAssignments(given: readonly string[]): FormAnswers | undefined {
  if (given.length === 0) return undefined
  return Object.fromEntries(
    given.map((assignment) => {
      const at = assignment.indexOf('=')
      if (at < 1) throw new Failure(exits.usage, `--set ${assignment}: no value`, 'write it as --set name=value')
      return [assignment.slice(0, at), assignment.slice(at + 1)]
    }),
  )
}

/** What was given, where nobody can be asked for the rest. Throws a `Failure` that says how to give it. */
export function filledIn(
  { id, form }: Pick<Approval, 'id' | 'form'>,
  given: FormAnswers | undefined,
): FormAnswers | undefined {
  const missing = (form?.fields ?? []).filter(
    (field) => field.required && field.default === undefined && !Object.hasOwn(given ?? {}, field.name),
  )
  if (missing.length === 0) return given
  const names = missing.map(({ name }) => escapeControls(name))
  throw new Failure(
    exits.usage,
    `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} needed`,
    `add ${names.map((name) => `--set ${name}=…`).join(' ')}; ${commandLine(`approval show ${id}`)} lists the fields`,
  )
}

/** Asks for the fields of a form on the terminal, one after the other; an empty line leaves one out. */
export async function askFields({ form }: Pick<Approval, 'form'>, given: FormAnswers = {}): Promise<FormAnswers> {
  const answers: Record<string, string> = { ...given }
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const interrupted = new AbortController()
  lines.once('SIGINT', () => interrupted.abort(new Failure(exits.interrupted, 'interrupted', 'nothing was answered')))
  try {
    for (const field of form?.fields ?? []) {
      if (Object.hasOwn(answers, field.name)) continue
      const answer = await lines.question(`${describeField(field)}\n> `, { signal: interrupted.signal })
      if (answer.trim() !== '') answers[field.name] = answer.trim()
    }
  } catch (error) {
    throw interrupted.signal.aborted ? interrupted.signal.reason : error
  } finally {
    lines.close()
  }
  return answers
}
