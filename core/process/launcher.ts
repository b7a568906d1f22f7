import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { safePath } from './environment.ts'

/**
 * `sealed`: it sees no other process, none of the daemon's files but its own folder, and nothing of it can outlive it. `namespace`: the
 * same, but for the files. `group`: a process group of its own, and no look into the memory of the daemon where Landlock or its own
 * capabilities can prevent it.
 */
export type Isolation = 'sealed' | 'namespace' | 'group'
export interface Launch {
  readonly timeoutMs: number
  readonly network: boolean
  /** Absolute folder it starts in. */
  readonly folder: string
  /** Absolute folders it must not see, but for `folder` in them. */
  readonly hidden: readonly string[]
}
/** Puts words before a program that take rights away from it. */
export interface Launcher {
  readonly isolation: Isolation
  words(program: readonly string[], launch: Launch): readonly string[]
}

/** A process space of its own: it sees no other process, so it cannot read the daemon's environment, and all of it ends with its first process. */
const space = ['--pid', '--fork', '--mount-proc', '--kill-child']
/**
 * Lays an empty folder over each hidden one, brings the own folder back in its place, and goes on as the user it was: what is laid over
 * belongs to a space it has no rights in, so it cannot be taken away. The words after it: folder, how many are hidden, those, the program.
 */
const seal =
  'f=$1; n=$2; shift 2; exec 3<"$f"; while [ "$n" -gt 0 ]; do mount -t tmpfs -o size=64k,mode=0755 svc "$1"; shift; n=$((n-1)); done; mkdir -p "$f"; mount -c --bind /proc/self/fd/3 "$f"; exec 3<&-; cd "$f"; exec "$@"'
const shell = '/bin/sh'

/** Away with what root may do beyond its files: the daemon then has rights that the program has not, so it cannot be looked into. */
const powerless = ['--inh-caps=-all', '--bounding-set=-all']
/**
 * Enters a Landlock domain (landlock(7): create a ruleset, restrict itself, at these numbers on every architecture) which forbids to make
 * block devices and nothing else. What is in a domain cannot look into a process outside, its environment and memory included.
 */
const domain =
  'my $a = pack("Q", 1 << 11); my $r = syscall(444, $a, 8, 0); $r >= 0 && syscall(446, $r, 0) == 0 or exit 126; exec { $ARGV[0] } @ARGV; exit 127'

interface Programs {
  readonly setpriv: string | undefined
  readonly unshare: string | undefined
  readonly prlimit: string | undefined
  readonly mount: string | undefined
  /** Words that take rights away where there are no spaces. */
  readonly confine: readonly string[]
}

/**
 * What this system offers of: no new privileges and an end with the daemon (setpriv), spaces (unshare, mount), limits (prlimit). `works`
 * tries a command, because many containers forbid spaces.
 */
export async function launcher(works: (command: readonly string[]) => Promise<boolean>): Promise<Launcher> {
  if (process.platform !== 'linux') return { isolation: 'group', words: (program) => program }
  const [setpriv, unshare, prlimit, mount, perl] = await Promise.all(
    ['setpriv', 'unshare', 'prlimit', 'mount', 'perl'].map(find),
  )
  const programs: Programs = { setpriv, unshare, prlimit, mount, confine: [] }
  for (const isolation of ['sealed', 'namespace'] as const) {
    const launch: Launch = {
      timeoutMs: 5000,
      network: false,
      folder: '/usr',
      hidden: isolation === 'sealed' ? ['/tmp'] : [],
    }
    if (
      unshare !== undefined &&
      (isolation === 'namespace' || mount !== undefined) &&
      (await works(wordsOf(isolation, programs, ['true'], launch)))
    )
      return { isolation, words: (program, given) => wordsOf(isolation, programs, program, given) }
  }
  const confine: string[] = []
  const root = process.getuid?.() === 0 && setpriv !== undefined ? [setpriv, ...powerless, '--'] : []
  const landlock = perl !== undefined && setpriv !== undefined ? [perl, '-e', domain, '--'] : []
  for (const words of [root, landlock])
    if (words.length > 0 && (await works([setpriv ?? '', '--no-new-privs', '--', ...confine, ...words, '/bin/true'])))
      confine.push(...words)
  return { isolation: 'group', words: (program, given) => wordsOf('group', { ...programs, confine }, program, given) }
}

function wordsOf(
  isolation: Isolation,
  { setpriv, unshare = 'unshare', prlimit, confine }: Programs,
  program: readonly string[],
  { timeoutMs, network, folder, hidden }: Launch,
): readonly string[] {
  const net = network ? [] : ['--net']
  // The first process of a space does not hear a polite signal, so that part is played by a second unshare, which only waits.
  const spaces =
    isolation === 'group'
      ? confine
      : isolation === 'namespace' || hidden.length === 0
        ? [unshare, '--user', '--map-current-user', ...space, ...net, '--', unshare, '--fork', '--']
        : [
            unshare,
            '--user',
            '--map-root-user',
            '--mount',
            ...space,
            ...net,
            '--',
            shell,
            '-ec',
            seal,
            shell,
            folder,
            String(hidden.length),
            ...hidden,
            unshare,
            '--fork',
            '--user',
            `--map-user=${process.getuid?.() ?? 0}`,
            `--map-group=${process.getgid?.() ?? 0}`,
            '--',
          ]
  return [
    ...(setpriv === undefined ? [] : [setpriv, '--no-new-privs', '--pdeathsig', 'KILL', '--']),
    ...spaces,
    ...(prlimit === undefined ? [] : [prlimit, ...limits(timeoutMs), '--']),
    ...program,
  ]
}

/** Generous for work, too small for an accident: address space is what it may reserve, data what it may use. */
function limits(timeoutMs: number): readonly string[] {
  const gib = 1024 ** 3
  return [
    '--core=0',
    `--cpu=${Math.ceil(timeoutMs / 1000) + 5}`,
    `--as=${64 * gib}`,
    `--data=${4 * gib}`,
    '--nproc=4096',
    '--nofile=1024',
    `--fsize=${gib}`,
  ]
}

async function find(name: string): Promise<string | undefined> {
  for (const folder of safePath) {
    const path = join(folder, name)
    try {
      await access(path, constants.X_OK)
      return path
    } catch {
      // Not here: the next folder may have it.
    }
  }
  return undefined
}
