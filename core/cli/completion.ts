import { defineCommand, homeArgs } from './command.ts'
import type { CommandEntry, CommandTree } from './command.ts'
import { listFlags } from './arguments.ts'
import type { Flag } from './arguments.ts'
import { exits, Failure } from './failure.ts'
import { locateHome } from './home-location.ts'
import { note, print, printJson } from './output.ts'
import { messageOf } from '../errors/message.ts'

/** One command with what can follow it. */
interface CompletedCommand {
  readonly path: readonly string[]
  readonly summary: string
  readonly flags: readonly Flag[]
  readonly children: CommandTree | undefined
  /** What its argument can be. */
  readonly values: readonly string[]
}
const shells = { bash: renderBash, zsh: renderZsh, fish: renderFish }

export default defineCommand({
  description: 'Print the completion script of a shell.',
  args: { shell: { type: 'positional', required: true, description: 'bash, zsh or fish' }, ...homeArgs },
  examples: [
    ['source <(svc completion bash)', 'for this shell; put it into ~/.bashrc to keep it'],
    ['svc completion zsh > ~/.zfunc/_svc', 'zsh, with ~/.zfunc in fpath'],
    ['svc completion fish > ~/.config/fish/completions/svc.fish', 'fish'],
  ],
  async run(args) {
    if (!Object.hasOwn(shells, args.shell))
      throw new Failure(exits.usage, `unknown shell "${args.shell}"`, 'it is one of bash, zsh, fish')
    const { loadRegistry } = await import('./command-registry.ts')
    const { commands, problems } = await loadRegistry(locateHome(args))
    for (const problem of problems) note(`svc: warning: ${problem}`)
    const script = shells[args.shell as keyof typeof shells](await listCommands(commands, []))
    if (args.json) printJson({ shell: args.shell, script })
    else print(script)
    return exits.ok
  },
})

async function listCommands(tree: CommandTree, path: readonly string[]): Promise<CompletedCommand[]> {
  const found: CompletedCommand[] = []
  for (const [name, entry] of Object.entries(tree)) {
    const here = [...path, name]
    // Importing itself again would be a circle.
    const isSelf = name === 'completion'
    found.push({
      path: here,
      summary: entry.summary,
      flags: isSelf ? [] : await readFlags(here, entry),
      children: entry.commands,
      values: isSelf ? Object.keys(shells) : [],
    })
    if (entry.commands) found.push(...(await listCommands(entry.commands, here)))
  }
  return found
}

/**
 * A command whose code is broken completes without its flags; words that a shell would read as its own are left out.
 */
async function readFlags(path: readonly string[], { load }: CommandEntry): Promise<readonly Flag[]> {
  if (!load) return []
  try {
    const flags = listFlags((await load()).default.args)
    return flags.filter(({ name, options }) => [name, ...options].every((word) => /^[\w.:@%+,/=-]+$/.test(word)))
  } catch (error) {
    const reason = messageOf(error)
    note(`svc: warning: the flags of "${path.join(' ')}" are left out: ${reason}`)
    return []
  }
}
function words(line: CompletedCommand): string {
  return [
    ...Object.keys(line.children ?? {}),
    ...line.values,
    ...(line.children && line.flags.length === 0 ? [] : [...line.flags.map((flag) => `--${flag.name}`), '--help']),
  ].join(' ')
}
/**
 * Joins the typed words to a command: the first word, and each further one below a group. Bash and zsh understand it; the
 * name `path` is taken in zsh.
 */
function readCommand(lines: readonly CompletedCommand[], all: string): string {
  return `  local typed='' word
  for word in ${all}; do
    [[ $word == -* ]] && continue
    case "$typed" in
      '') typed="$word" ;;
      ${groupsOf(lines)
        .map((group) => `'${group}'`)
        .join('|')}) typed="$typed $word" ;;
    esac
  done`
}
/** One row for each flag that takes one of a few words. */
function flagValues(lines: readonly CompletedCommand[], row: (flag: string, values: string) => string): string {
  const flags = new Map(
    lines.flatMap((line) =>
      line.flags.flatMap(({ name, options }) => (options.length > 0 ? [[name, options.join(' ')] as const] : [])),
    ),
  )
  return [...flags].map(([name, values]) => row(`--${name}`, values)).join('\n')
}
function renderBash(lines: readonly CompletedCommand[]): string {
  return `# completion of svc for bash
_svc() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
${readCommand(lines, '"${COMP_WORDS[@]:1:COMP_CWORD-1}"')}
  case "$typed" in
    '') words='${topWords(lines)}' ;;
${lines.map((line) => `    '${line.path.join(' ')}') words='${words(line)}' ;;`).join('\n')}
    *) words='' ;;
  esac
  case "\${COMP_WORDS[COMP_CWORD-1]}" in
${flagValues(lines, (flag, values) => `    ${flag}) words='${values}' ;;`)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _svc svc`
}
function renderZsh(lines: readonly CompletedCommand[]): string {
  return `#compdef svc
_svc() {
${readCommand(lines, '"${(@)words[2,CURRENT-1]}"')}
  local -a found
  case "$typed" in
    '') found=(${topWords(lines)}) ;;
${lines.map((line) => `    '${line.path.join(' ')}') found=(${words(line)}) ;;`).join('\n')}
  esac
  case "\${words[CURRENT-1]}" in
${flagValues(lines, (flag, values) => `    ${flag}) found=(${values}) ;;`)}
  esac
  compadd -a found || _files
}
# From a folder of fpath the file is run by the first tab, which has to complete already.
if [[ $funcstack[1] == _svc ]]; then _svc "$@"; else compdef _svc svc; fi`
}
function renderFish(lines: readonly CompletedCommand[]): string {
  const quote = (text: string): string => `'${text.replaceAll("'", "\\'")}'`
  const valueOf = ({ isText, options }: Flag): string => {
    if (!isText) return ''
    return options.length > 0 ? ` -x -a ${quote(options.join(' '))}` : ' -r -F'
  }
  const out = ['# completion of svc for fish', 'complete -c svc -f']
  for (const line of lines) {
    const name = line.path.at(-1) ?? ''
    const parents = line.path.slice(0, -1)
    const below = [...parents.map(seen), `not ${seen(siblings(lines, parents))}`].join('; and ')
    const when = parents.length === 0 ? '__fish_use_subcommand' : below
    const inside = line.path.map(seen).join('; and ')
    out.push(`complete -c svc -n ${quote(when)} -a ${quote(name)} -d ${quote(line.summary)}`)
    if (line.values.length > 0) out.push(`complete -c svc -n ${quote(inside)} -a ${quote(line.values.join(' '))}`)
    for (const flag of line.flags) {
      out.push(`complete -c svc -n ${quote(inside)} -l ${flag.name}${valueOf(flag)} -d ${quote(flag.description)}`)
    }
  }
  return out.join('\n')
}
const seen = (words: string): string => `__fish_seen_subcommand_from ${words}`
/** The commands of a group. */
function siblings(lines: readonly CompletedCommand[], group: readonly string[]): string {
  return lines
    .filter(({ path }) => path.length === group.length + 1 && group.every((word, index) => path[index] === word))
    .map(({ path }) => path.at(-1))
    .join(' ')
}
function groupsOf(lines: readonly CompletedCommand[]): string[] {
  return lines.filter((line) => line.children).map((line) => line.path.join(' '))
}
function topWords(lines: readonly CompletedCommand[]): string {
  const names = lines.filter(({ path }) => path.length === 1).map(({ path }) => path[0])
  return [...names, '--help', '--version'].join(' ')
}
