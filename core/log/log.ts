import { createConsola } from 'consola/core'
import type { ConsolaInstance, LogObject, LogType } from 'consola/core'
import { createMask } from './mask.ts'
import type { Mask } from './mask.ts'
import { cutLine, formatJson, formatText } from './text.ts'
import type { LogLevelName, LogLine } from './text.ts'

export type { ConsolaInstance } from 'consola/core'

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug' | 'trace'
const levels: Readonly<Record<LogLevel, number>> = { silent: -1, error: 0, warn: 1, info: 3, debug: 4, trace: 5 }

export interface LogOptions {
  readonly level?: LogLevel
  readonly format?: 'text' | 'json'
  /**
   * Gets whole lines with their newline. Default: standard error, so that standard output holds only what a command
   * answers.
   */
  readonly write?: (line: string) => void
  /** Default: whether standard error is a terminal. */
  readonly colored?: boolean
  /** Longest message in characters, and how many the fields and the errors of a line may have. */
  readonly lineChars?: number
  /** Gets each line that is written, after masking: log streams are made of these. */
  readonly onLine?: (line: LogLine) => void
}
/** The logger with what the whole process shares. Children made by `withTag` follow its level and know its secrets. */
export interface Log extends ConsolaInstance {
  /** Hides this value in every line from now on. */
  registerSecret(value: string): void
  setLevel(level: LogLevel): void
  setFormat(format: 'text' | 'json'): void
  /** Leaves lines out that have such an error or text, but at level debug. */
  setKnown(isKnown: (part: unknown) => boolean): void
  readonly mask: Mask
}

/**
 * A logger whose arguments are texts, errors and, last, an object of fields. Secrets are masked and control
 * characters escaped;
 * stacks are printed at level error only.
 */
export function createLog(options: LogOptions = {}): Log {
  const write =
    options.write ??
    ((line: string) => {
      process.stderr.write(line)
    })
  const colored = options.colored ?? process.stderr.isTTY === true
  const lineChars = options.lineChars ?? 8192
  const mask = createMask()
  let level = levels[options.level ?? 'info']
  let format = options.format ?? 'text'
  let isKnown: ((part: unknown) => boolean) | undefined

  const reporter = {
    log(entry: LogObject) {
      if (isKnown && level < levels.debug && partsOf(entry).some(isKnown)) return
      const line = toLine(entry, mask)
      options.onLine?.(cutLine(line, lineChars))
      write(format === 'json' ? formatJson(line, lineChars) : formatText(line, colored, lineChars))
    },
  }
  /** consola copies the level into a child; here all share one, so that it can be changed while running. */
  const share = (instance: ConsolaInstance): ConsolaInstance => {
    const create = instance.create.bind(instance)
    instance.create = (overrides) => share(create(overrides))
    return Object.defineProperty(instance, 'level', {
      get: () => level,
      set: (value: number) => {
        level = value
      },
    })
  }
  // Throttling would hold a timer and compare every message as JSON.
  const root = share(createConsola({ level, throttle: 0, reporters: [reporter] }))
  return Object.assign(root, {
    registerSecret: (value: string) => mask.register(value),
    setLevel: (name: LogLevel) => {
      level = levels[name]
    },
    setFormat: (name: 'text' | 'json') => {
      format = name
    },
    setKnown: (says: (part: unknown) => boolean) => {
      isKnown = says
    },
    mask,
  })
}

/** Words and values. */
function partsOf({ args }: LogObject): readonly unknown[] {
  return args.flatMap((part: unknown) => (isFields(part) ? Object.values(part) : [part]))
}

function toLine(entry: LogObject, mask: Mask): LogLine {
  const level = nameLevel(entry.level, entry.type)
  const withStack = entry.level <= levels.error
  const args = [...entry.args] as unknown[]
  const last = args.at(-1)
  const given = args.length > 1 && isFields(last) ? Object.entries(args.pop() as Record<string, unknown>) : []
  // An error among the fields has a stack to read, too, where stacks are shown.
  const thrown = given.flatMap(([, value]) => (withStack && value instanceof Error ? [value] : []))
  const short = given.map(([key, value]) => [
    key,
    withStack && value instanceof Error ? `${value.name}: ${value.message}` : value,
  ])
  const fields =
    short.length > 0 ? (mask.value(Object.fromEntries(short), withStack) as Record<string, unknown>) : undefined
  const errors = [...args.filter((arg) => arg instanceof Error), ...thrown]
  const words = args.map((arg) => {
    if (arg instanceof Error) return mask.text(arg.name === 'Error' ? arg.message : `${arg.name}: ${arg.message}`)
    return typeof arg === 'string' ? mask.text(arg) : (JSON.stringify(mask.value(arg, false)) ?? 'undefined')
  })
  return {
    time: entry.date,
    level,
    type: entry.type,
    tag: entry.tag,
    message: words.join(' '),
    fields,
    errors: withStack ? errors.map((error) => mask.value(error, true)) : [],
  }
}
function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value))
}
function nameLevel(level: number, type: LogType): LogLevelName {
  if (type === 'fatal') return 'fatal'
  return level <= 0 ? 'error' : level === 1 ? 'warn' : level <= 3 ? 'info' : level === 4 ? 'debug' : 'trace'
}
