import { commandLine, commandName } from '../process/command-name.ts'
import { listFlags } from './arguments.ts'
import type { Command, CommandEntry, CommandTree } from './command.ts'
import { coreCommands } from './core-commands.ts'
import { exitMeanings } from './failure.ts'

const examples: Command['examples'] = [
  ['svc start', 'serve on http://127.0.0.1:4545'],
  ['svc status', 'whether it runs, and what it does'],
  ['svc doctor', 'find out what is wrong'],
]

/** Help of `svc` itself. */
export function renderTop(version: string, commands: CommandTree): string {
  const isCore = ([name]: readonly [string, CommandEntry]): boolean => Object.hasOwn(coreCommands, name)
  const entries = Object.entries(commands)
  const core = entries.filter(isCore).map(summaryOf)
  const others = entries.filter((entry) => !isCore(entry)).map(summaryOf)
  const width = widthOf([...core, ...others])
  return [
    `svc ${version}: hosts autonomous agents; every feature is a plugin.`,
    '',
    `Usage: ${commandName()} <command> [flags]`,
    '',
    'Commands:',
    columns(core, width),
    ...(others.length > 0 ? ['', 'Commands of plugins:', columns(others, width)] : []),
    '',
    `See ${commandLine('<command> --help')} for what is below a command, its flags and examples.`,
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
    renderExits(),
  ].join('\n')
}

/** Help of a command that only has others below it. */
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

export function renderCommand(path: readonly string[], command: Command, below: CommandTree = {}): string {
  const { args, description } = command
  const name = path.join(' ')
  const positionals = Object.entries(args).filter(([, arg]) => arg.type === 'positional')
  const usage = positionals.map(([word, arg]) => (arg.required === false ? `[${word}]` : `<${word}>`)).join(' ')
  const flags = listFlags(args).map((flag) => {
    const aliases = flag.aliases.map((alias) => `-${alias}, `).join('')
    return [`${aliases}--${flag.name}${flag.isText ? ` <${flag.hint}>` : ''}`, flag.description] as const
  })
  return [
    wrap(description),
    '',
    `Usage: ${commandName()} ${[name, usage].filter(Boolean).join(' ')} [flags]`,
    ...(Object.keys(below).length > 0
      ? ['', `Commands below it (${commandLine(`${name} <command> --help`)}):`, columns(listNames(below))]
      : []),
    ...(positionals.length > 0
      ? ['', 'Arguments:', columns(positionals.map(([word, arg]) => [word, arg.description ?? '']))]
      : []),
    '',
    'Flags:',
    columns([...flags, ['--help', 'This text']]),
    '',
    'Examples:',
    renderExamples(command.examples),
    '',
    'Exit codes:',
    renderExits(),
  ].join('\n')
}

/** Examples as they are typed here. */
function renderExamples(lines: Command['examples']): string {
  const name = commandName()
  const typed = (text: string): string => text.replaceAll(/(?<![\w./-])svc (?=[a-z])/g, `${name} `)
  return columns(lines.map(([line, meaning]) => [typed(line), typed(meaning)]))
}
function renderExits(): string {
  return columns(exitMeanings.map(([code, meaning]) => [String(code), meaning]))
}
function listNames(tree: CommandTree): [string, string][] {
  return Object.entries(tree).map(([name, { summary, load, commands }]) => {
    if (!commands) return [name, summary]
    const below = Object.keys(commands).join('|')
    return [`${name} ${load ? `[${below}]` : below}`, summary]
  })
}

const summaryOf = ([name, { summary }]: readonly [string, CommandEntry]): [string, string] => [name, summary]

function widthOf(rows: readonly (readonly [string, string])[]): number {
  return Math.max(...rows.map(([left]) => left.length))
}
function columns(rows: readonly (readonly [string, string])[], width = widthOf(rows)): string {
  const indent = width + 4
  // Beside long command lines there is no room.
  const isStacked = indent + MIN_ROOM > (process.stdout.columns ?? Infinity)
  const right = (text: string): string => (isStacked ? `\n      ${wrap(text, 6)}` : `  ${wrap(text, indent)}`)
  return rows
    .map(([left, text]) => `  ${isStacked ? left : left.padEnd(width)}${text === '' ? '' : right(text)}`.trimEnd())
    .join('\n')
}

/** A text beside a column of this width, in lines that fit into the terminal; as it is where there is none. */
function wrap(text: string, indent = 0): string {
  const room = (process.stdout.columns ?? Infinity) - indent
  if (text.length <= room || room < MIN_ROOM) return text
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (longer.length <= room) line = longer
    else {
      if (line !== '') lines.push(line)
      line = word
    }
  }
  return [...lines, line].join(`\n${' '.repeat(indent)}`)
}
/** With less, every word would have a line. */
const MIN_ROOM = 20
