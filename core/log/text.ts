import type { LogType } from 'consola/core'

/** One message after masking. */
export interface LogLine {
  readonly time: Date
  readonly level: LogLevelName
  readonly type: LogType
  readonly tag: string
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>> | undefined
  /** Errors that were logged, each as the lines to show. */
  readonly errors: readonly unknown[]
}
export type LogLevelName = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace'

const colors = { fatal: 41, error: 31, warn: 33, info: 36, debug: 90, trace: 90 } as const

/**
 * Makes text harmless on a terminal and in a file of lines: one message cannot pretend to be two, or move the cursor.
 */
export function escapeControls(text: string, keepNewlines = false): string {
  return text.replaceAll(/[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (char) => {
    if (char === '\n') return keepNewlines ? '\n' : '\\n'
    if (char === '\t') return keepNewlines ? '\t' : '\\t'
    if (char === '\r') return '\\r'
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
/** At most `chars` characters, saying how many are missing. Never half a surrogate pair. */
export function shorten(text: string, chars: number): string {
  if (text.length <= chars) return text
  const cut = /[\ud800-\udbff]/.test(text.charAt(chars - 1)) ? chars - 1 : chars
  return `${text.slice(0, cut)}… [${text.length - cut} more characters]`
}

/** Cuts the message, and the texts among the fields and in the errors together, to so many characters each. */
export function cutLine(line: LogLine, chars: number): LogLine {
  return {
    ...line,
    message: shorten(line.message, chars),
    fields: cutTexts(line.fields, { chars }) as LogLine['fields'],
    errors: cutTexts(line.errors, { chars }) as LogLine['errors'],
  }
}
function cutTexts(value: unknown, remaining: { chars: number }): unknown {
  if (typeof value === 'string') {
    const text = shorten(value, remaining.chars)
    remaining.chars = Math.max(0, remaining.chars - value.length)
    return text
  }
  if (Array.isArray(value)) return value.map((item) => cutTexts(item, remaining))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutTexts(item, remaining)]))
}

/** A line for people: time, level where it matters, tag, message, fields; stacks below, indented. */
export function formatText(line: LogLine, colored: boolean, lineChars: number): string {
  const paint = (code: number, text: string): string => (colored ? `\u001b[${code}m${text}\u001b[0m` : text)
  const time = paint(90, line.time.toISOString().slice(11, 23))
  const level = paint(colors[line.level], line.level.padEnd(5))
  const tag = line.tag === '' ? '' : `${paint(35, `[${escapeControls(line.tag)}]`)} `
  const fields =
    line.fields === undefined
      ? ''
      : Object.entries(line.fields)
          .map(([key, value]) => ` ${paint(90, `${escapeControls(key)}=`)}${formatField(value)}`)
          .join('')
  const message = shorten(escapeControls(line.message), lineChars)
  const head = `${time} ${level} ${tag}${message}${fields === '' ? '' : shorten(fields, lineChars)}`
  const stacks = line.errors.map((error) =>
    shorten(escapeControls(formatStack(error), true), lineChars)
      .split('\n')
      .map((text) => `\n    ${text}`)
      .join(''),
  )
  return `${head}${stacks.join('')}\n`
}
function formatField(value: unknown): string {
  if (typeof value === 'string') return /^[\w./:@+-]+$/.test(value) ? value : escapeControls(JSON.stringify(value))
  return value === undefined ? 'undefined' : escapeControls(JSON.stringify(value))
}
function formatStack(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error)
  const { stack, name, message, cause, errors } = error as {
    stack?: unknown
    name?: unknown
    message?: unknown
    cause?: unknown
    errors?: unknown
  }
  const first = typeof stack === 'string' ? stack : `${String(name)}: ${String(message)}`
  const inner = Array.isArray(errors) ? errors.map((item) => `\n- ${formatStack(item)}`).join('') : ''
  return `${first}${inner}${cause === undefined ? '' : `\ncaused by ${formatStack(cause)}`}`
}

/** One JSON object: `time`, `level`, `tag`, `msg`, `fields`, `errors`. */
export function formatJson(line: LogLine, lineChars: number): string {
  const body = {
    time: line.time.toISOString(),
    level: line.level,
    ...(line.tag === '' ? {} : { tag: line.tag }),
    msg: shorten(line.message, lineChars),
    ...(line.fields === undefined ? {} : { fields: line.fields }),
    ...(line.errors.length === 0 ? {} : { errors: line.errors }),
  }
  const text = JSON.stringify(body)
  if (text.length <= lineChars * 2) return `${text}\n`
  // Shortens each field, so that the line stays valid JSON.
  const shortened = {
    ...body,
    msg: shorten(line.message, lineChars / 4),
    fields: { cut: shorten(JSON.stringify(line.fields ?? {}), lineChars / 4) },
    errors: line.errors.map((error) => shorten(JSON.stringify(error) ?? '', lineChars / 4)).slice(0, 4),
  }
  return `${JSON.stringify(shortened)}\n`
}
