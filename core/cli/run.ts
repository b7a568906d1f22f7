import { readBuild } from '../process/installation.ts'
import { commandLine } from '../process/command-name.ts'
import { findNearest } from '../schema/nearest.ts'
import { checkArguments } from './arguments.ts'
import type { Command, CommandEntry, CommandTree } from './command.ts'
import { coreCommands } from './core-commands.ts'
import { exits, Failure } from './failure.ts'
import { messageOf } from '../errors/message.ts'

interface FoundCommand {
  readonly path: readonly string[]
  readonly entry: CommandEntry | undefined
  /** The words after the path. */
  readonly rest: readonly string[]
}

/** Runs one command line and returns its exit code. Nothing is thrown: what goes wrong is printed on standard error. */
export async function runLine(argv: readonly string[]): Promise<number> {
  const json = argv.includes('--json')
  try {
    return await dispatch(argv)
  } catch (error) {
    const { renderFailure, toFailure } = await import('./failure-output.ts')
    const failure = toFailure(error)
    process.stderr.write(`${renderFailure(failure, json)}\n`)
    return failure.exit
  }
}

async function dispatch(argv: readonly string[]): Promise<number> {
  if (argv.length === 1 && ['--version', '-v', 'version'].includes(argv[0] ?? '')) return printVersion(false)
  if (argv.length === 2 && argv.includes('--version') && argv.includes('--json')) return printVersion(true)
  const words = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv
  const tree = await findTree(words)
  const found = findCommand(words, tree)
  const { path, entry, rest } = found
  const wantsHelp = rest.some((word, index) => ['--help', '-h'].includes(word) && !rest.slice(0, index).includes('--'))
  if (!entry?.load || wantsHelp) return await showHelp(found, tree, wantsHelp)
  const command = await loadCommand(path, entry.load)
  checkArguments(path, command.args, rest)
  return await command.run(rest)
}

/** The commands that the first word may be one of: a start loads none of the plugins' commands. */
async function findTree(words: readonly string[]): Promise<CommandTree> {
  if (Object.hasOwn(coreCommands, words[0] ?? '')) return coreCommands
  const { findCommands } = await import('./find-commands.ts')
  return await findCommands(words)
}

function findCommand(words: readonly string[], commands: CommandTree): FoundCommand {
  const path: string[] = []
  let entry: CommandEntry | undefined
  let tree: CommandTree | undefined = commands
  let at = 0
  for (; tree && at < words.length; at++) {
    const given = words[at] ?? ''
    if (given.startsWith('-')) break
    const word: string = path.length === 0 ? singularIn(tree, given) : given
    const next: CommandEntry | undefined = Object.hasOwn(tree, word) ? tree[word] : undefined
    if (!next) {
      const nearest = findNearest(word, Object.keys(tree))
      throw new Failure(
        exits.usage,
        `unknown command "${[...path, word].join(' ')}"`,
        nearest === undefined
          ? `see ${commandLine([...path, '--help'].join(' '))}`
          : `did you mean ${commandLine([...path, nearest].join(' '))}?`,
      )
    }
    path.push(word)
    entry = next
    tree = next.commands
  }
  return { path, entry, rest: words.slice(at) }
}

/** A group of commands may be named in the plural. */
function singularIn(tree: CommandTree, word: string): string {
  const singular = word.replace(/s$/, '')
  return !Object.hasOwn(tree, word) && Object.hasOwn(tree, singular) ? singular : word
}

/** A plugin's command may fail to load; the message then names the command. */
async function loadCommand(
  path: readonly string[],
  load: () => Promise<{ readonly default: Command }>,
): Promise<Command> {
  let command: Partial<Command> | undefined
  try {
    command = (await load()).default
  } catch (error) {
    const reason = messageOf(error)
    throw new Failure(
      exits.failed,
      `the code of the command "${path.join(' ')}" cannot be loaded: ${reason}`,
      undefined,
      {
        cause: error,
      },
    )
  }
  if (typeof command?.run !== 'function' || typeof command.args !== 'object')
    throw new Failure(
      exits.failed,
      `the code of the command "${path.join(' ')}" is not a command`,
      'its default export has to be what defineCommand() of svc/cli returns',
    )
  return command as Command
}

async function showHelp({ path, entry, rest }: FoundCommand, commands: CommandTree, isAsked: boolean): Promise<number> {
  const { renderCommand, renderGroup, renderTop } = await import('./help.ts')
  const unknown = rest.find((word) => word.startsWith('-') && !['--help', '-h', '--json'].includes(word))
  if (!isAsked && unknown !== undefined && !entry)
    throw new Failure(exits.usage, `unknown flag ${unknown}`, `see ${commandLine('--help')}`)
  const isWanted = isAsked || (path.length === 0 && rest.length === 0)
  const output = isWanted ? process.stdout : process.stderr
  let text: string
  if (entry?.load) text = renderCommand(path, await loadCommand(path, entry.load), entry.commands)
  else text = entry ? renderGroup(path, entry) : renderTop(readBuild().version, commands)
  output.write(`${text}\n`)
  return isWanted ? exits.ok : exits.usage
}

function printVersion(json: boolean): number {
  const build = readBuild()
  const facts = {
    name: 'svc',
    version: build.version,
    build_date: build.buildDate,
    git_sha: build.gitSha,
    node: process.version,
  }
  process.stdout.write(
    json
      ? `${JSON.stringify(facts)}\n`
      : `svc ${build.version} (${build.gitSha}, ${build.buildDate}, node ${process.version})\n`,
  )
  return exits.ok
}
