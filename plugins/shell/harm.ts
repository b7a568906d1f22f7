import type { CallAssessment } from 'svc/sdk'
import { shellDepth } from './shell-depth.ts'
import { splitWords } from './words.ts'

/** Programs that only read and print, with any option. */
const readers: ReadonlySet<string> = new Set(
  `ls pwd echo cat head tail wc cut tr basename dirname true false sleep whoami id uname uptime df du stat which nl seq
  grep realpath readlink md5sum sha1sum sha256sum cmp comm diff free expr test`.split(/\s+/),
)
/** Programs that only read if each of their arguments matches. */
const argumentsThatRead: Readonly<Record<string, RegExp>> = {
  date: /^(?:-u|-R|-I\w*|--utc|\+.*)$/,
  sort: /^(?:-[bdfghinMruVcsz]+|-k[\d.,]+|-t.|[^-].*)$/,
  hostname: /^-[fsiId]$/,
  // With `e` before its other letters it shows the environment of other programs, keys and all.
  ps: /^(?:-[AadefjHlLwyZ]+|[aflux]+|\d+)$/,
  printf: /^[^-].*$/,
}
/** Configuration in the working folder can make git run programs, so it is never among those that only read. */
const gitReaders: ReadonlySet<string> = new Set(['status', 'log', 'diff', 'show', 'branch', 'rev-parse', 'ls-files'])
/** Programs whose effect cannot be undone: they delete, change rights, end processes or send data. */
const irreversible: ReadonlySet<string> = new Set(
  `rm rmdir shred dd truncate wipefs fdisk parted mount umount chown chmod chattr kill killall pkill shutdown reboot
  halt poweroff systemctl service useradd userdel usermod passwd iptables nft ufw insmod modprobe sysctl scp sftp rsync
  ftp telnet curl wget`.split(/\s+/),
)
const isIrreversible = (name: string): boolean => irreversible.has(name) || name.startsWith('mkfs')

/** What a person who approves the command needs to know. `args` is empty unless the model passes words separately. */
export function assessCommand(command: string, args: readonly string[] = []): CallAssessment {
  const split = args.length > 0 ? { kind: 'words' as const, words: [command, ...args] } : splitWords(command)
  if (split.kind !== 'words') return { intent: 'run a command in a shell', harm: 'critical', standing: 'once' }
  const { words } = split
  const harm = harmOf(words)
  const [program = ''] = words
  const intent = `run the program ${program.slice(program.lastIndexOf('/') + 1).slice(0, 60)}`
  if (harm === 'critical') return { intent, harm, standing: 'once' }
  // An agent that may list one folder of the workspace gains nothing by listing another. Every other approval covers
  // the same words only: one more operand may be a file that must not be deleted.
  return harm === 'low'
    ? {
        intent,
        harm,
        standing: { key: `reads ${program}`, covers: `any ${program} that only reads and stays in its workspace` },
      }
    : {
        intent,
        harm,
        standing: { key: JSON.stringify(words), covers: 'exactly this command, until the agent changes something' },
      }
}

export function harmOf(words: readonly string[]): NonNullable<CallAssessment['harm']> {
  const [program = '', ...rest] = words
  const name = program.slice(program.lastIndexOf('/') + 1)
  if (shellDepth(words, [name]) !== undefined || isIrreversible(name)) return 'critical'
  // A path may lead to a program that the agent wrote itself.
  if (program.includes('/')) return 'high'
  if (name === 'git')
    return gitReaders.has(rest[0] ?? '') && !rest.some((word) => word.startsWith('--output')) ? 'medium' : 'high'
  const shape = Object.hasOwn(argumentsThatRead, name) ? argumentsThatRead[name] : undefined
  const reads = readers.has(name) || (shape !== undefined && rest.every((word) => shape.test(word)))
  if (!reads) return 'high'
  return rest.some(leavesWorkspace) ? 'medium' : 'low'
}

/** Whether a word, or the value of an option, may name something outside the working folder. */
function leavesWorkspace(word: string): boolean {
  return /(?:^|=|^-[a-zA-Z]\w*)[/~]|(?:^|[/=]|^-[a-zA-Z]\w*)\.\.(?:\/|$)/.test(word)
}
