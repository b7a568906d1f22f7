import { isObject } from 'svc/sdk'
import { readPath } from '../expressions/expression.ts'

/** A placeholder, or one that a backslash makes plain text: name, and a path into JSON. */
const PLACEHOLDER = /(\\?)\{\{\s*([A-Za-z_][\w-]*)((?:\.[A-Za-z_][\w-]*|\[\d{1,6}\])*)\s*\}\}/g

export interface Placeholder {
  readonly name: string
  /** Of its first brace, from 0. */
  readonly at: number
}

/** Which variables a text reads, in its order. Other braces are plain text. */
export function findPlaceholders(text: string): readonly Placeholder[] {
  return [...text.matchAll(PLACEHOLDER)].flatMap(({ 1: escape, 2: name = '', index }) =>
    escape === '\\' ? [] : [{ name, at: index }],
  )
}

export class TemplateTooLong extends Error {
  override readonly name = 'TemplateTooLong'
  constructor(maxChars: number) {
    super(`The text would be longer than ${maxChars} characters (plugins.workflows.max_rendered_chars)`)
  }
}

/**
 * The text with its placeholders replaced, in a single pass: a value that has placeholders stays as it is, so the output
 * of an agent cannot read other variables. What is missing is empty. Throws `TemplateTooLong` before it builds more than
 * `maxChars`.
 */
export function renderTemplate(text: string, variables: Readonly<Record<string, string>>, maxChars: number): string {
  const parts: string[] = []
  let length = 0
  const add = (part: string): void => {
    length += part.length
    if (length > maxChars) throw new TemplateTooLong(maxChars)
    parts.push(part)
  }
  let end = 0
  for (const { 0: whole, 1: escape, 2: name = '', 3: path = '', index } of text.matchAll(PLACEHOLDER)) {
    add(text.slice(end, index))
    add(escape === '\\' ? whole.slice(1) : valueOf(variables, name, path))
    end = index + whole.length
  }
  add(text.slice(end))
  return parts.join('')
}

/** The same for every text of a JSON value, such as the arguments of a tool; `maxChars` is for all of them. */
export function renderValue(value: unknown, variables: Readonly<Record<string, string>>, maxChars: number): unknown {
  let left = maxChars
  const render = (part: unknown): unknown => {
    if (typeof part === 'string') {
      const text = renderTemplate(part, variables, left)
      left -= text.length
      return text
    }
    if (Array.isArray(part)) return part.map(render)
    return isObject(part) ? Object.fromEntries(Object.entries(part).map(([key, inner]) => [key, render(inner)])) : part
  }
  return render(value)
}

/** Every text in a JSON value. */
export function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value
  else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) yield* textsIn(inner)
}

function valueOf(variables: Readonly<Record<string, string>>, name: string, path: string): string {
  const text = Object.hasOwn(variables, name) ? (variables[name] ?? '') : ''
  if (path === '') return text
  const keys = path.match(/[A-Za-z_][\w-]*|\d+/g) ?? []
  const value = readPath(
    text,
    keys.map((key) => (/^\d/.test(key) ? Number(key) : key)),
  )
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
