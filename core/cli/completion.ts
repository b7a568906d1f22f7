import { command, homeArgs } from './command.ts'
import { commands } from './commands.ts'
import type { CommandEntry } from './commands.ts'
import { exits, Failure } from './failure.ts'
import { listFlags } from './help.ts'
import { print, printJson } from './output.ts'

interface Line {
  readonly path: readonly string[]
  readonly summary: string
  readonly flags: ReturnType<typeof listFlags>
  readonly children: Readonly<Record<string, CommandEntry>> | undefined
  /** What its argument can be. */
  readonly values: readonly string[]
}
const shells = { bash: renderBash, zsh: renderZsh, fish: renderFish }

export default command({
  description: 'Print the completion script of a shell.',
  args: { shell: { type: 'positional', required: true, description: 'bash, zsh or fish' }, json: homeArgs.json },
  examples: [
    ['source <(svc completion bash)', 'for this shell; put it into ~/.bashrc to keep it'],
    ['svc completion zsh > ~/.zfunc/_svc', 'zsh, with ~/.zfunc in fpath'],
    ['svc completion fish > ~/.config/fish/completions/svc.fish', 'fish'],
  ],
  async run(args) {
    if (!Object.hasOwn(shells, args.shell))
      throw new Failure(exits.usage, `unknown shell "${args.shell}"`, 'it is one of bash, zsh, fish')
    const script = shells[args.shell as keyof typeof shells](await listLines(commands, []))
    if (args.json) printJson({ shell: args.shell, script })
    else print(script)
    return exits.ok
  },
})

async function listLines(tree: Readonly<Record<string, CommandEntry>>, path: readonly string[]): Promise<Line[]> {
  const lines: Line[] = []
  for (const [name, entry] of Object.entries(tree)) {
    const here = [...path, name]
    // Its own flags are none, and importing itself again would be a circle.
    const own = name === 'completion'
    const flags = entry.load && !own ? listFlags((await entry.load()).default.args) : []
    lines.push(
      { path: here, summary: entry.summary, flags, children: entry.commands, values: own ? Object.keys(shells) : [] },
      ...(entry.commands ? await listLines(entry.commands, here) : []),
    )
  }
  return lines
}
function words(line: Line): string {
  return [
    ...Object.keys(line.children ?? {}),
    ...line.values,
    ...(line.children && line.flags.length === 0 ? [] : [...line.flags.map((flag) => `--${flag.name}`), '--help']),
  ].join(' ')
}
/** Joins the typed words to a command: the first word, and the second one below a group. Bash and zsh understand it; the name `path` is taken in zsh. */
function readCommand(lines: readonly Line[], all: string): string {
  return `  local typed='' word
  for word in ${all}; do
    [[ $word == -* ]] && continue
    case "$typed" in
      '') typed="$word" ;;
      ${groupsOf(lines).join('|')}) typed="$typed $word" ;;
    esac
  done`
}
/** One row for each flag that takes one of a few words. */
function flagValues(lines: readonly Line[], row: (flag: string, values: string) => string): string {
  const flags = new Map(
    lines.flatMap((line) =>
      line.flags.flatMap(({ name, options }) => (options.length > 0 ? [[name, options.join(' ')] as const] : [])),
    ),
  )
  return [...flags].map(([name, values]) => row(`--${name}`, values)).join('\n')
}
function renderBash(lines: readonly Line[]): string {
  return `# completion of svc for bash
_svc() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
${readCommand(lines, '"${COMP_WORDS[@]:1:COMP_CWORD-1}"')}
  case "$typed" in
    '') words='${topWords()}' ;;
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
function renderZsh(lines: readonly Line[]): string {
  return `#compdef svc
_svc() {
${readCommand(lines, '"${(@)words[2,CURRENT-1]}"')}
  local -a found
  case "$typed" in
    '') found=(${topWords()}) ;;
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
function renderFish(lines: readonly Line[]): string {
  const quote = (text: string): string => `'${text.replaceAll("'", "\\'")}'`
  const out = ['# completion of svc for fish', 'complete -c svc -f']
  for (const line of lines) {
    const [parent, name] = line.path.length === 1 ? [undefined, line.path[0]] : [line.path[0], line.path[1]]
    const when =
      parent === undefined
        ? '__fish_use_subcommand'
        : `__fish_seen_subcommand_from ${parent}; and not __fish_seen_subcommand_from ${siblings(lines, parent)}`
    out.push(`complete -c svc -n ${quote(when)} -a ${quote(name ?? '')} -d ${quote(line.summary)}`)
    if (line.values.length > 0)
      out.push(`complete -c svc -n ${quote(`__fish_seen_subcommand_from ${name}`)} -a ${quote(line.values.join(' '))}`)
    const inside =
      parent === undefined
        ? `__fish_seen_subcommand_from ${name}`
        : `__fish_seen_subcommand_from ${parent}; and __fish_seen_subcommand_from ${name}`
    for (const flag of line.flags) {
      out.push(
        `complete -c svc -n ${quote(inside)} -l ${flag.name}${flag.isText ? (flag.options.length > 0 ? ` -x -a ${quote(flag.options.join(' '))}` : ' -r -F') : ''} -d ${quote(flag.description)}`,
      )
    }
  }
  return out.join('\n')
}
function siblings(lines: readonly Line[], parent: string): string {
  return lines
    .filter((line) => line.path.length === 2 && line.path[0] === parent)
    .map((line) => line.path[1])
    .join(' ')
}
function groupsOf(lines: readonly Line[]): string[] {
  return lines.filter((line) => line.children).map((line) => line.path.join(' '))
}
function topWords(): string {
  return [...Object.keys(commands), '--help', '--version'].join(' ')
}
