import { constants } from 'node:fs'
import { access, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Isolation } from './child.ts'
import { safePath } from './environment.ts'
import { realPath, systemFolders, within, without } from './folders.ts'
import { bridgePort, closeFiles, enterLandlock, perlWords } from './perl.ts'
import { namespacedFamilies, seccompNumber, socketFilter } from './seccomp.ts'

/** Where a program finds the proxy of its network namespace. */
export const proxyPort = 3128
const proxyAddress = `http://127.0.0.1:${proxyPort}`
/** What programs look for that use a proxy. Several know only one of the spellings. */
export const proxyVariables: Readonly<Record<string, string>> = Object.fromEntries([
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) =>
    [name, name.toLowerCase()].map((each) => [each, proxyAddress]),
  ),
  ...['NO_PROXY', 'no_proxy'].map((name) => [name, 'localhost,127.0.0.1,::1']),
  ['NODE_USE_ENV_PROXY', '1'],
])
/**
 * File numbers beside the three usual ones, where `Launcher.pipes` says so: facts about the namespace, its end, the
 * filter.
 */
export const INFO_FD = 3
export const END_FD = 4
export const FILTER_FD = 5
const proxySocket = '/run/svc-network.sock'
/** A private /tmp lies in memory. */
const TMP_BYTES = 1_073_741_824
const SHARED_MEMORY_BYTES = 268_435_456

export interface Launch {
  readonly timeoutMs: number
  /** Real path of the folder it starts in, which it may write to. */
  readonly folder: string
  /**
   * A program of the operator's own: it has the whole system and its network, but for `hidden`, and writes to no
   * `code`.
   */
  readonly operator: boolean
  /** Folders beside its own. */
  readonly read: readonly string[]
  readonly write: readonly string[]
  /** Folders of the daemon it must not see, but for `folder` in them. */
  readonly hidden: readonly string[]
  /** Folders it must not write to, although they may lie in one it may. */
  readonly code: readonly string[]
  /** Socket of the proxy that is its only way to the network. Absent: it has none. */
  readonly proxy: string | undefined
}
/** Puts words before a program that take rights away from it. */
export interface Launcher {
  readonly isolation: Isolation
  /**
   * Whether the words expect the pipes at `INFO_FD` and `END_FD`, and for a program of an agent the filter at
   * `FILTER_FD`.
   */
  readonly pipes: boolean
  /** What is written to `FILTER_FD`. */
  readonly filter: Uint8Array | undefined
  /** Whether it has a process space of its own, which ends as a whole. */
  readonly space: boolean
  words(program: readonly string[], launch: Launch): readonly string[]
}

interface Programs {
  readonly bwrap: string | undefined
  readonly setpriv: string | undefined
  readonly unshare: string | undefined
  readonly prlimit: string | undefined
  readonly perl: string | undefined
  /** Files the daemon was started with that every program would have open. */
  readonly open: readonly string[]
}
type Shown = ReturnType<typeof systemFolders>

/**
 * Away with what root may do beyond its files: the daemon then has rights that the program has not, so it cannot be
 * looked into.
 */
const powerless = ['--inh-caps=-all', '--bounding-set=-all']
/** A process space of its own: it sees no other process, and all of it ends with its first. */
const space = ['--user', '--map-current-user', '--pid', '--fork', '--mount-proc', '--kill-child', '--ipc']

/**
 * The strongest of what this system offers: bubblewrap, else Landlock, else nothing. `works` tries a command,
 * because many containers
 * forbid namespaces.
 */
export async function launcher(works: (command: readonly string[]) => Promise<boolean>): Promise<Launcher> {
  if (process.platform !== 'linux') return unconfined(undefined, 'this system has neither bubblewrap nor Landlock')
  const [bwrap, setpriv, unshare, prlimit, perl] = await Promise.all(
    ['bwrap', 'setpriv', 'unshare', 'prlimit', 'perl'].map(find),
  )
  const offered: Offered = {
    programs: { bwrap, setpriv, unshare, prlimit, perl, open: await inheritedFiles() },
    shown: systemFolders(),
    works,
  }
  return (
    (await offerBubblewrap(offered)) ??
    (await offerLandlock(offered)) ??
    unconfined(offered.programs, 'neither bubblewrap nor Landlock works on this machine')
  )
}

interface Offered {
  readonly programs: Programs
  readonly shown: Shown
  readonly works: (command: readonly string[]) => Promise<boolean>
}
/** What is started to find out whether a way to confine programs works here. */
const trial: Launch = {
  timeoutMs: 5000,
  folder: '/usr',
  operator: false,
  read: [],
  write: [],
  hidden: [],
  code: [],
  proxy: undefined,
}
const sharedKernel = 'it shares the kernel of this machine, so a hole in the kernel is a way out'

async function offerBubblewrap({ programs, shown, works }: Offered): Promise<Launcher | undefined> {
  const { bwrap, perl } = programs
  if (bwrap === undefined || !(await works(bubblewrap(programs, shown, ['/bin/true'], trial, false)))) return undefined
  return {
    isolation: {
      level: 'bubblewrap',
      network: perl === undefined ? 'none' : 'proxy',
      gaps: [sharedKernel, ...(perl === undefined ? ['without perl no program has a network'] : []), ...left(programs)],
    },
    pipes: true,
    filter: socketFilter(namespacedFamilies),
    space: true,
    words: (program, launch) => bubblewrap(programs, shown, program, launch, true),
  }
}

async function offerLandlock({ programs, shown, works }: Offered): Promise<Launcher | undefined> {
  const { perl, setpriv, unshare } = programs
  // A filter that denies every socket is what takes the network away here: without it Landlock alone would leave a
  // way out.
  if (perl === undefined || setpriv === undefined || seccompNumber() === undefined) return undefined
  const covers = (version: number): Promise<boolean> =>
    works([perl, '-e', `exit(syscall(444, 0, 0, 1) < ${version} ? 1 : 0)`])
  for (const spaces of unshare === undefined ? [false] : [true, false]) {
    if (!(await works(landlock(programs, shown, ['/bin/true'], trial, spaces)))) continue
    return {
      isolation: {
        level: 'landlock',
        network: 'none',
        gaps: await landlockGaps(covers, spaces),
      },
      pipes: false,
      filter: undefined,
      space: spaces,
      words: (program, launch) => landlock(programs, shown, program, launch, spaces),
    }
  }
  return undefined
}

/** `covers`: whether the kernel has this version of Landlock. */
async function landlockGaps(
  covers: (version: number) => Promise<boolean>,
  spaces: boolean,
): Promise<readonly string[]> {
  const gaps = [
    'programs have no network, not even 127.0.0.1: that needs bubblewrap',
    sharedKernel,
    'names, sizes and rights of files can be seen everywhere, and rights of files of its user changed',
  ]
  if (!(await covers(3)))
    gaps.push('this kernel is older than 6.2: it can cut files short that the user of the daemon may write')
  if (spaces) return gaps
  gaps.push('what it started goes on when the daemon is killed')
  if (!(await covers(6))) gaps.push('this kernel is older than 6.12: it can end the daemon')
  gaps.push(
    'it sees the command lines of other processes',
    'what leaves its process group and clears its environment can outlive it',
  )
  return gaps
}

/** Nothing but limits, and for root fewer rights. */
function unconfined(programs: Programs | undefined, why: string): Launcher {
  return {
    isolation: {
      level: 'none',
      network: 'host',
      gaps: [`${why}: a program can do all that the daemon's user can`, ...left(programs)],
    },
    pipes: false,
    filter: undefined,
    space: false,
    words: (program, { timeoutMs }) =>
      programs === undefined
        ? program
        : [...closing(programs), ...harmless(programs), ...limits(programs, timeoutMs), ...program],
  }
}

/** Node closes what it opened itself; what was handed to it stays open to its children. */
function closing({ perl, open }: Programs, pipes = false): readonly string[] {
  // Those at the places of the pipes are overwritten by them.
  const foreign = open.filter((file) => !pipes || Number(file) > FILTER_FD)
  return perl === undefined || foreign.length === 0
    ? []
    : perlWords(perl, closeFiles, [String(foreign.length), ...foreign])
}
function left(programs: Programs | undefined): readonly string[] {
  return programs && programs.perl === undefined && programs.open.length > 0
    ? [`without perl, files the daemon was started with stay open to programs (${programs.open.join(', ')})`]
    : []
}
/** Numbers of open files that are not closed when a program starts: flag O_CLOEXEC is missing. */
async function inheritedFiles(): Promise<readonly string[]> {
  const open = (await readdir('/proc/self/fd')).filter((name) => Number(name) > 2)
  const kept = await Promise.all(
    open.map(async (name) => {
      const facts = await readFile(`/proc/self/fdinfo/${name}`, 'latin1').catch(() => '' /* closed meanwhile */)
      const flags = /^flags:\s*(\d+)/m.exec(facts)?.[1]
      return flags !== undefined && (Number.parseInt(flags, 8) & 0o2000000) === 0
    }),
  )
  return open.filter((_, at) => kept[at])
}

function bubblewrap(
  programs: Programs,
  shown: Shown,
  program: readonly string[],
  launch: Launch,
  pipes: boolean,
): readonly string[] {
  const { bwrap = 'bwrap', perl } = programs
  const { folder, operator, proxy, timeoutMs } = launch
  const inside =
    operator || proxy === undefined || perl === undefined
      ? program
      : perlWords(perl, bridgePort, [proxySocket, String(proxyPort), ...program])
  return [
    ...closing(programs, pipes),
    ...limits(programs, timeoutMs),
    bwrap,
    '--unshare-user',
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(operator ? [] : ['--unshare-net', '--disable-userns']),
    '--die-with-parent',
    // A session of its own, so that it has no terminal, and a group of its own, which is asked to end while
    // bubblewrap waits.
    '--new-session',
    '--cap-drop',
    'ALL',
    ...(pipes ? ['--info-fd', String(INFO_FD), '--sync-fd', String(END_FD)] : []),
    ...(pipes && !operator && socketFilter(namespacedFamilies) !== undefined ? ['--seccomp', String(FILTER_FD)] : []),
    ...(operator ? wholeSystem(launch) : ownWorld(launch, shown)),
    '--chdir',
    folder,
    '--',
    ...inside,
  ]
}

/** System folders to read, its own folder to write, and nothing else. What comes later lies over what came before. */
function ownWorld({ folder, read, write, hidden, proxy }: Launch, shown: Shown): readonly string[] {
  const seen = [...shown.filter(({ link }) => link === undefined).map(({ path }) => path), ...read]
  return [
    ...shown.flatMap(({ path, link }) => (link === undefined ? ['--ro-bind', path, path] : ['--symlink', link, path])),
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    ...memory('/dev/shm', SHARED_MEMORY_BYTES),
    '--remount-ro',
    '/dev',
    ...memory('/tmp', TMP_BYTES),
    ...shallowFirst(read).flatMap((path) => ['--ro-bind', path, path]),
    ...hidden.flatMap((each) => (seen.some((path) => within(each, path)) ? ['--tmpfs', each] : [])),
    ...shallowFirst(write).flatMap((path) => ['--bind', path, path]),
    '--bind',
    folder,
    folder,
    ...(proxy === undefined ? [] : ['--ro-bind', proxy, proxySocket]),
    '--remount-ro',
    '/',
  ]
}

/** All of the system, but for what is hidden and what code or configuration is loaded from. */
function wholeSystem({ folder, read, write, hidden, code }: Launch): readonly string[] {
  const bind = (how: string, paths: readonly string[]) => paths.flatMap((path) => [how, path, path])
  const isHidden = (path: string): boolean => hidden.some((each) => within(path, each))
  return [
    ...bind('--dev-bind', ['/']),
    '--proc',
    '/proc',
    ...bind(
      '--ro-bind-try',
      code.filter((path) => !isHidden(path) && !write.some((each) => within(each, path))),
    ),
    ...hidden.flatMap((path) => ['--tmpfs', path]),
    ...bind('--ro-bind', read.filter(isHidden)),
    ...bind('--bind', [...write.filter(isHidden), folder]),
  ]
}

const memory = (path: string, bytes: number): readonly string[] => ['--size', String(bytes), '--tmpfs', path]
const shallowFirst = (paths: readonly string[]): readonly string[] =>
  paths.toSorted((one, other) => one.length - other.length)

const devices = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom', '/dev/tty']

function landlock(
  programs: Programs,
  shown: Shown,
  program: readonly string[],
  launch: Launch,
  spaces: boolean,
): readonly string[] {
  const { setpriv = 'setpriv', unshare = 'unshare', perl = 'perl' } = programs
  const { operator, timeoutMs } = launch
  const rules = landlockRules(launch, shown)
  const filter = operator ? undefined : socketFilter([])
  return [
    ...closing(programs),
    setpriv,
    '--no-new-privs',
    '--pdeathsig',
    'KILL',
    '--',
    ...(spaces ? [unshare, ...space, ...(operator ? [] : ['--net']), '--'] : []),
    ...(process.getuid?.() === 0 ? [setpriv, ...powerless, '--'] : []),
    ...limits(programs, timeoutMs),
    ...perlWords(perl, enterLandlock, [
      String(rules.length / 2),
      ...rules,
      operator ? 'open' : 'closed',
      filter === undefined ? '0' : String(seccompNumber()),
      filter?.toString('hex') ?? '',
      spaces ? 'first' : 'only',
      ...program,
    ]),
  ]
}

/**
 * Pairs of rights and path, as `enterLandlock` takes them. Landlock only grants: a folder with exceptions is granted
 * entry by entry.
 */
function landlockRules({ folder, operator, read, write, hidden, code }: Launch, shown: Shown): readonly string[] {
  const covered = hidden.map(realPath)
  const readFrom = operator
    ? ['/']
    : [...shown.flatMap(({ path, link }) => (link === undefined ? [path] : [])), '/proc', ...read]
  // An operator's program may follow the words of an agent: it must not change what the daemon loads.
  const writable = operator ? without('/', [...covered, ...code]) : []
  return [
    ...readFrom.flatMap((path) => without(path, covered)).flatMap((path) => ['r', path]),
    ...writable.flatMap((path) => ['w', path]),
    ...devices.flatMap((path) => ['d', path]),
    ...(operator ? read : []).flatMap((path) => ['r', path]),
    ...[...write, folder].flatMap((path) => ['w', path]),
  ]
}

function harmless({ setpriv }: Programs): readonly string[] {
  if (setpriv === undefined) return []
  return [setpriv, '--no-new-privs', '--pdeathsig', 'KILL', ...(process.getuid?.() === 0 ? powerless : []), '--']
}

/** Generous for work, too small for an accident: address space is what it may reserve, data what it may use. */
function limits({ prlimit }: Pick<Programs, 'prlimit'>, timeoutMs: number): readonly string[] {
  if (prlimit === undefined) return []
  const gib = 1024 ** 3
  return [
    prlimit,
    '--core=0',
    `--cpu=${Math.ceil(timeoutMs / 1000) + 5}`,
    `--as=${64 * gib}`,
    `--data=${4 * gib}`,
    '--nproc=4096',
    '--nofile=1024',
    `--fsize=${gib}`,
    '--',
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
