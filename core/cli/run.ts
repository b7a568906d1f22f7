import { runCommand } from 'citty'
import type { ArgsDef } from 'citty'
import { readBuild } from '../build/info.ts'
import { findNearest } from '../schema/nearest.ts'
import { commands } from './commands.ts'
import type { CommandEntry } from './commands.ts'
import { exits, Failure } from './failure.ts'
import { commandLine } from '../process/command-name.ts'

interface Found {
  readonly path: readonly string[]
  readonly entry: CommandEntry | undefined
  readonly rest: readonly string[]
}

/** Runs one command line and returns its exit code. Nothing is thrown: what goes wrong is printed on standard error. */
export async function runLine(argv: readonly string[]): Promise<number> {
  const json = argv.includes('--json')
  try {
    return await dispatch(argv)
  } catch (error) {
    const { renderFailure, toFailure } = await import('./report.ts')
    const failure = toFailure(error)
    process.stderr.write(`${renderFailure(failure, json)}\n`)
    return failure.exit
  }
}

async function dispatch(argv: readonly string[]): Promise<number> {
  if (argv.length === 1 && ['--version', '-v', 'version'].includes(argv[0] ?? '')) return printVersion(false)
  if (argv.length === 2 && argv.includes('--version') && argv.includes('--json')) return printVersion(true)
  const { path, entry, rest } = findCommand(argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv)
  const wantsHelp = rest.some((word, index) => ['--help', '-h'].includes(word) && !rest.slice(0, index).includes('--'))
  if (!entry?.load || wantsHelp) return await showHelp(path, entry, rest, wantsHelp)
  const { default: found } = await entry.load()
  checkFlags(path, found.args, rest)
  const { result } = await runCommand(found.definition, { rawArgs: [...rest] })
  return typeof result === 'number' ? result : exits.ok
}

function findCommand(argv: readonly string[]): Found {
  const path: string[] = []
  let entry: CommandEntry | undefined
  let tree: Readonly<Record<string, CommandEntry>> | undefined = commands
  let at = 0
  for (; tree && at < argv.length; at++) {
    const word = argv[at] ?? ''
    if (word.startsWith('-')) break
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
  return { path, entry, rest: argv.slice(at) }
}

async function showHelp(
  path: readonly string[],
  entry: CommandEntry | undefined,
  rest: readonly string[],
  asked: boolean,
): Promise<number> {
  const { renderCommand, renderGroup, renderTop } = await import('./help.ts')
  const unknown = rest.find((word) => word.startsWith('-') && !['--help', '-h', '--json'].includes(word))
  if (!asked && unknown !== undefined && !entry)
    throw new Failure(exits.usage, `unknown flag ${unknown}`, `see ${commandLine('--help')}`)
  const text = entry?.load
    ? renderCommand(path, (await entry.load()).default, entry.commands)
    : entry
      ? renderGroup(path, entry)
      : renderTop(readBuild().version)
  if (asked || (path.length === 0 && rest.length === 0)) process.stdout.write(`${text}\n`)
  else process.stderr.write(`${text}\n`)
  return asked || (path.length === 0 && rest.length === 0) ? exits.ok : exits.usage
}
async function printVersion(json: boolean): Promise<number> {
  const build = readBuild()
  process.stdout.write(
    json
      ? `${JSON.stringify({ name: 'svc', version: build.version, build_date: build.buildDate, git_sha: build.gitSha, node: process.version })}\n`
      : `svc ${build.version} (${build.gitSha}, ${build.buildDate}, node ${process.version})\n`,
  )
  return exits.ok
}

/** citty takes every flag and drops surplus words without a sound; a typing error must not. */
function checkFlags(path: readonly string[], args: ArgsDef, rest: readonly string[]): void {
  const help = `see ${commandLine(`${path.join(' ')} --help`)}`
  const flags = new Map<
    string,
    { readonly name: string; readonly isText: boolean; readonly options: readonly string[] }
  >()
  for (const [name, arg] of Object.entries(args)) {
    if (arg.type === 'positional') continue
    for (const alias of [name, ...('alias' in arg && arg.alias !== undefined ? [arg.alias].flat() : [])])
      flags.set(alias, { name, isText: arg.type !== 'boolean', options: 'options' in arg ? (arg.options ?? []) : [] })
  }
  const positionals = Object.entries(args).filter(([, arg]) => arg.type === 'positional')
  let words = 0
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? ''
    if (word === '--') {
      words += rest.length - at - 1
      break
    }
    if (!word.startsWith('-') || word === '-') {
      words++
      continue
    }
    const [typed = '', value] = word.replace(/^--?/, '').split(/=(.*)/s, 2)
    const flag =
      flags.get(typed) ??
      (typed.startsWith('no-') && flags.get(typed.slice(3))?.isText === false ? flags.get(typed.slice(3)) : undefined)
    if (!flag) {
      const nearest = findNearest(typed, flags.keys())
      throw new Failure(
        exits.usage,
        `unknown flag ${word.split('=')[0] ?? word}`,
        nearest === undefined ? help : `did you mean --${nearest}?`,
      )
    }
    if (!flag.isText) continue
    const given = value ?? rest[++at] ?? ''
    if (given === '' || (value === undefined && given.startsWith('-') && given !== '-' && !/^-\d/.test(given)))
      throw new Failure(exits.usage, `--${flag.name} needs a value`, help)
    if (flag.options.length > 0 && !flag.options.includes(given))
      throw new Failure(exits.usage, `--${flag.name} cannot be "${given}"`, `it is one of ${flag.options.join(', ')}`)
  }
  if (words > positionals.length)
    throw new Failure(
      exits.usage,
      `too many arguments: ${positionals.length === 0 ? 'none is' : `at most ${positionals.length} are`} expected`,
      help,
    )
  const missing = positionals.slice(words).find(([, arg]) => arg.required !== false)
  if (missing) throw new Failure(exits.usage, `${missing[0]} is missing`, help)
}
