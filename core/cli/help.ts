import type { ArgsDef } from 'citty'
import type { Command } from './command.ts'
import { commands } from './commands.ts'
import type { CommandEntry } from './commands.ts'
import { exitMeanings } from './failure.ts'
import { commandLine, commandName } from '../process/command-name.ts'

/** Examples as they are typed here. */
function renderExamples(examples: Command['examples']): string {
  const name = commandName()
  const isCommand = new RegExp(`(?<![\\w./-])svc (?=(?:${Object.keys(commands).join('|')})\\b)`, 'g')
  return columns(
    examples.map(([line, meaning]) => [
      line.replaceAll(isCommand, `${name} `),
      meaning.replaceAll(isCommand, `${name} `),
    ]),
  )
}
const examples: Command['examples'] = [
  ['svc start', 'serve on http://127.0.0.1:4545'],
  ['svc chat', 'talk to the agent "assistant"'],
  ['svc doctor', 'find out what is wrong'],
]
function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd()).join('\n')
}

/** Help of `svc` itself. */
export function renderTop(version: string): string {
  return [
    `svc ${version}: hosts autonomous agents; every feature is a plugin.`,
    '',
    `Usage: ${commandName()} <command> [flags]`,
    '',
    'Commands:',
    columns(listNames(commands)),
    '',
    'Flags of every command:',
    columns([
      ['--help', 'Help and examples'],
      ['--json', 'JSON instead of text'],
      ['--home <folder>', 'Home of the daemon (default: SVC_HOME, else ~/.svc)'],
      ['--version', 'Version of svc (alone)'],
    ]),
    '',
    'Examples:',
    renderExamples(examples),
    '',
    'Exit codes:',
    columns(exitMeanings.map(([code, meaning]) => [String(code), meaning])),
  ].join('\n')
}
function listNames(tree: Readonly<Record<string, CommandEntry>>): [string, string][] {
  return Object.entries(tree).map(([name, entry]) => [
    entry.commands
      ? `${name} ${entry.load ? `[${Object.keys(entry.commands).join('|')}]` : Object.keys(entry.commands).join('|')}`
      : name,
    entry.summary,
  ])
}

/** Help of `svc agent` and the like. */
export function renderGroup(path: readonly string[], entry: CommandEntry): string {
  const name = path.join(' ')
  return [
    `${entry.summary}.`,
    '',
    `Usage: ${commandName()} ${name} <command> [flags]`,
    '',
    'Commands:',
    columns(listNames(entry.commands ?? {})),
    '',
    `See ${commandLine(`${name} <command> --help`)} for flags and examples.`,
  ].join('\n')
}

export function renderCommand(
  path: readonly string[],
  { args, description, examples }: Command,
  below: CommandEntry['commands'] = {},
): string {
  const positionals = Object.entries(args).filter(([, arg]) => arg.type === 'positional')
  const usage = positionals.map(([name, arg]) => (arg.required === false ? `[${name}]` : `<${name}>`)).join(' ')
  return [
    description,
    '',
    `Usage: ${commandName()} ${[...path, usage].filter(Boolean).join(' ')} [flags]`,
    ...(Object.keys(below).length > 0
      ? ['', `Commands below it (${commandLine(`${path.join(' ')} <command> --help`)}):`, columns(listNames(below))]
      : []),
    ...(positionals.length > 0
      ? ['', 'Arguments:', columns(positionals.map(([name, arg]) => [name, arg.description ?? '']))]
      : []),
    '',
    'Flags:',
    columns([
      ...listFlags(args).map(({ flag, hint, description: text }) => [`${flag}${hint}`, text] as const),
      ['--help', 'This text'],
    ]),
    '',
    'Examples:',
    renderExamples(examples),
    '',
    'Exit codes:',
    columns(exitMeanings.map(([code, meaning]) => [String(code), meaning])),
  ].join('\n')
}

/** The flags of a command as they are typed. */
export function listFlags(args: ArgsDef): {
  readonly name: string
  readonly flag: string
  readonly hint: string
  readonly description: string
  readonly isText: boolean
  readonly options: readonly string[]
}[] {
  return Object.entries(args)
    .filter(([, arg]) => arg.type !== 'positional')
    .map(([name, arg]) => {
      const alias =
        'alias' in arg && arg.alias !== undefined
          ? [arg.alias]
              .flat()
              .map((short) => `-${short}, `)
              .join('')
          : ''
      const options = 'options' in arg ? (arg.options ?? []) : []
      const isText = arg.type !== 'boolean'
      const hint = isText ? ` <${options.length > 0 ? options.join('|') : (arg.valueHint ?? 'text')}>` : ''
      return { name, flag: `${alias}--${name}`, hint, description: arg.description ?? '', isText, options }
    })
}
