import { matchesWildcard } from 'svc/internal'
import { splitWords } from './words.ts'

/** One entry of `capabilities.shell`: `*`, or the words of a command in which `*` matches any characters of a word. */
interface Pattern {
  readonly all: boolean
  readonly words: readonly string[]
  readonly open: boolean
}

function readPattern(text: string): Pattern | undefined {
  const trimmed = text.trim()
  if (trimmed === '*') return { all: true, words: [], open: true }
  const split = splitWords(trimmed, '*?[]{}~#$&|;<>()')
  // An invalid pattern grants nothing.
  if (split.kind !== 'words') return undefined
  return { all: false, words: split.words, open: split.words.at(-1)?.endsWith('*') ?? false }
}

/** Programs that run what they are given as text or as further words: a pattern must name them word for word. */
const shells: ReadonlySet<string> = new Set([
  'sh',
  'bash',
  'dash',
  'zsh',
  'ksh',
  'ksh93',
  'mksh',
  'fish',
  'csh',
  'tcsh',
  'ash',
  'busybox',
  'toybox',
  'pwsh',
  'powershell',
  'cmd',
  'cmd.exe',
  'env',
  'nohup',
  'timeout',
  'nice',
  'ionice',
  'chrt',
  'taskset',
  'setsid',
  'stdbuf',
  'sudo',
  'doas',
  'su',
  'runuser',
  'xargs',
  'parallel',
  'time',
  'watch',
  'script',
  'unshare',
  'nsenter',
  'chroot',
  'setpriv',
  'prlimit',
  'flock',
  'strace',
  'ltrace',
  'gdb',
  'ssh',
  'ld.so',
  'expect',
  'socat',
  'nc',
  'ncat',
  'netcat',
  'make',
  'vim',
  'vi',
  'ex',
  'ed',
  'screen',
  'tmux',
  'at',
  'batch',
  'crontab',
  'docker',
  'podman',
  'awk',
  'gawk',
  'mawk',
  'nawk',
  'sed',
])
/** Interpreters, and the options that are followed by code. */
const interpreters: readonly (readonly [name: RegExp, inline: RegExp])[] = [
  [/^python[\d.]*$|^pypy[\d.]*$/, /^-[a-zA-Z]*[cmi]|^-$/],
  [
    /^(node|nodejs|bun)$/,
    /^-[a-zA-Z]*[epri]|^--(eval|interactive|print|require|import|loader|experimental-loader)|^-$/,
  ],
  [/^deno$/, /^(eval|repl)$|^-$/],
  [/^(perl|ruby)[\d.]*$/, /^-[a-zA-Z\d]*[eErmM]|^-$/],
  [/^php[\d.]*$/, /^-[a-zA-Z]*[rBRF]|^-$/],
  [/^lua(jit)?[\d.]*$/, /^-[a-zA-Z]*[el]|^-$/],
  [/^Rscript$|^R$/, /^-e|^--file=/],
  [/^osascript$|^tclsh[\d.]*$|^julia$|^ghci?$|^irb$|^scala$|^groovy$|^elixir$|^erl$/, /^-/],
  [/^find$/, /^-(exec|execdir|ok|okdir)$/],
  [/^git$/, /^-c|^--config-env|^--exec-path|^-p$|^--upload-pack|^--receive-pack/],
  [/^tar$/, /^--(to-command|checkpoint-action|use-compress-program|rsh-command)|^-I/],
]

/**
 * The word that makes a command run inline code, which must be the last literal word of the pattern; `undefined` for an
 * ordinary command.
 */
export function shellDepth(words: readonly string[], names: readonly string[]): number | undefined {
  if (names.some((name) => shells.has(name))) return 0
  for (const [name, inline] of interpreters) {
    if (!names.some((each) => name.test(each))) continue
    // Without a file it reads code from its input: only a pattern of this one word allows that.
    if (words.length === 1) return names.some((each) => /^(find|git|tar)$/.test(each)) ? undefined : 1
    const at = words.findIndex((word, index) => index > 0 && inline.test(word))
    if (at > 0) return at
  }
  return undefined
}

/**
 * Whether the patterns allow a command, given as its words. `names` are all names of the program: a link to a shell is
 * a shell. Shells, programs that start others and interpreters with inline code need `*`, or a pattern with exactly
 * these words.
 */
export function allows(patterns: readonly string[], words: readonly string[], names: readonly string[]): boolean {
  const depth = shellDepth(words, names)
  return patterns.some((text) => {
    const pattern = readPattern(text)
    if (!pattern) return false
    if (pattern.all) return true
    if (!covers(pattern, words)) return false
    if (depth === undefined) return true
    if (words.length === depth) return pattern.words.length === 1 && pattern.words[0] === words[0]
    const literal = pattern.words.slice(0, depth + 1)
    // The name as written must be that of a shell: a pattern for "./run" was not meant for a link to bash.
    return (
      literal.length > depth &&
      literal.every((word, index) => word === words[index]) &&
      shellDepth(literal, [baseName(literal[0] ?? '')]) !== undefined
    )
  })
}

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

function covers({ words: pattern, open }: Pattern, words: readonly string[]): boolean {
  const last = pattern.length - 1
  if (pattern.at(-1) === '*' && last > 0)
    return (
      words.length >= last && pattern.slice(0, last).every((each, index) => matchesWildcard(each, words[index] ?? ''))
    )
  if (words.length < pattern.length || (!open && words.length > pattern.length)) return false
  return pattern.every((each, index) => matchesWildcard(each, words[index] ?? ''))
}
