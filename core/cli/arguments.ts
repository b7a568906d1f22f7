import type { ArgsDef } from 'citty'
import { commandLine } from '../process/command-name.ts'
import { findNearest } from '../schema/nearest.ts'
import { exits, Failure } from './failure.ts'

/** A flag of a command as it is typed. */
export interface Flag {
  readonly name: string
  readonly aliases: readonly string[]
  readonly description: string
  /** Whether it takes a value. */
  readonly isText: boolean
  readonly hint: string
  /** The values it can have; any when there are none. */
  readonly options: readonly string[]
}

export function listFlags(args: ArgsDef): readonly Flag[] {
  return Object.entries(args)
    .filter(([, arg]) => arg.type !== 'positional')
    .map(([name, arg]) => {
      const aliases = 'alias' in arg && arg.alias !== undefined ? [arg.alias].flat() : []
      const options = 'options' in arg ? (arg.options ?? []) : []
      const isText = arg.type !== 'boolean'
      const hint = options.length > 0 ? options.join('|') : (arg.valueHint ?? 'text')
      return { name, aliases, description: arg.description ?? '', isText, hint, options }
    })
}

/** citty accepts unknown flags and ignores surplus words; a typing error must not pass. Throws `Failure`. */
export function checkArguments(path: readonly string[], args: ArgsDef, words: readonly string[]): void {
  const help = `see ${commandLine(`${path.join(' ')} --help`)}`
  const flags = new Map(listFlags(args).flatMap((flag) => [flag.name, ...flag.aliases].map((name) => [name, flag])))
  let count = 0
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    if (word === '--') {
      count += words.length - at - 1
      break
    }
    if (!word.startsWith('-') || word === '-') {
      count++
      continue
    }
    const [typed = '', value] = word.replace(/^--?/, '').split(/=(.*)/s, 2)
    const flag = findFlag(flags, typed, word.split('=')[0] ?? word, help)
    if (!flag.isText) continue
    if (value === undefined) at++
    checkValue(flag, value ?? words[at] ?? '', value === undefined, help)
  }
  checkCount(args, count, help)
  checkRequired(args, words, help)
}

function findFlag(flags: ReadonlyMap<string, Flag>, name: string, typed: string, help: string): Flag {
  const negated = name.startsWith('no-') ? flags.get(name.slice(3)) : undefined
  const flag = flags.get(name) ?? (negated?.isText === false ? negated : undefined)
  if (flag) return flag
  const nearest = findNearest(name, flags.keys())
  throw new Failure(exits.usage, `unknown flag ${typed}`, nearest === undefined ? help : `did you mean --${nearest}?`)
}

/** `isNextWord`: the value was the word after the flag, where another flag means that the value is missing. */
function checkValue({ name, options }: Flag, value: string, isNextWord: boolean, help: string): void {
  const isFlag = isNextWord && value.startsWith('-') && value !== '-' && !/^-\d/.test(value)
  if (value === '' || isFlag) throw new Failure(exits.usage, `--${name} needs a value`, help)
  if (options.length > 0 && !options.includes(value))
    throw new Failure(exits.usage, `--${name} cannot be "${value}"`, `it is one of ${options.join(', ')}`)
}

function checkCount(args: ArgsDef, count: number, help: string): void {
  const positionals = Object.entries(args).filter(([, arg]) => arg.type === 'positional')
  if (count > positionals.length) {
    const expected = positionals.length === 0 ? 'none is' : `at most ${positionals.length} are`
    throw new Failure(exits.usage, `too many arguments: ${expected} expected`, help)
  }
  const missing = positionals.slice(count).find(([, arg]) => arg.required !== false)
  if (missing) throw new Failure(exits.usage, `${missing[0]} is missing`, help)
}

function checkRequired(args: ArgsDef, words: readonly string[], help: string): void {
  const given = new Set(words.map((word) => word.replace(/^--?/, '').replace(/=.*/s, '')))
  for (const [name, arg] of Object.entries(args)) {
    if (arg.type === 'positional' || arg.required !== true) continue
    const aliases = 'alias' in arg && arg.alias !== undefined ? [arg.alias].flat() : []
    if (![name, ...aliases].some((one) => given.has(one))) throw new Failure(exits.usage, `--${name} is missing`, help)
  }
}
