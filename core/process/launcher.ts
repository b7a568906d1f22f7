import { constants } from 'node:fs'
import { access, readdir, readFile } from 'node:fs/promises'
import { sep } from 'node:path'
import type { Isolation } from './child.ts'
import { programProxy, programProxyPort, safePath } from './environment.ts'
import { realPath, systemFolders, within, without } from './folders.ts'
import { bridgePort, closeFiles, enterLandlock, perlWords, startWithDaemon } from './perl.ts'
import { namespacedFamilies, seccompNumber, socketFilter } from './seccomp.ts'

/** Variables that programs read their proxy from. Several programs know only one of the spellings. */
export const proxyVariables: Readonly<Record<string, string>> = Object.fromEntries([
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) =>
    [name, name.toLowerCase()].map((each) => [each, programProxy]),
  ),
  ...['NO_PROXY', 'no_proxy'].map((name) => [name, 'localhost,127.0.0.1,::1']),
  ['NODE_USE_ENV_PROXY', '1'],
])
/**
 * File descriptors beside the three standard ones if `Launcher.pipes` is true: facts about the namespace, its end, and
 * the seccomp filter.
 */
export const INFO_FD = 3
export const END_FD = 4
export const FILTER_FD = 5
const proxySocket = '/run/svc-network.sock'
/** A browser that finds itself root refuses to confine its pages. */
const NOBODY = '65534'
/** A private /tmp is in memory. */
const TMP_BYTES = 1_073_741_824
const SHARED_MEMORY_BYTES = 268_435_456

export interface Launch {
  readonly timeoutMs: number
  /** Real path of the folder it starts in, which it may write to. */
  readonly folder: string
  /**
   * A program the operator chose: it may use the whole system and its network except for `hidden`, and does not write
   * to `code`.
   */
  readonly operator: boolean
  /** As in `SpawnRequest`. */
  readonly confinesItself?: boolean
  /** Further folders. */
  readonly read: readonly string[]
  readonly write: readonly string[]
  /** Folders of the daemon it must not see, except for `folder` in them. */
  readonly hidden: readonly string[]
  /** Folders it must not write to, even inside a writable one. */
  readonly code: readonly string[]
  /** Socket of the proxy that is its only way to the network. Absent: it has no network. */
  readonly proxy: string | undefined
}
/** Prefixes a command with programs that take rights away from it. */
export interface Launcher {
  readonly isolation: Isolation
  /** Whether the command expects pipes at `INFO_FD`, `END_FD` and `FILTER_FD`. */
  readonly pipes: boolean
  /** What is written to `FILTER_FD`. */
  readonly filter: Uint8Array | undefined
  /** Whether the program has its own PID namespace, which ends as a whole. */
  readonly hasPidNamespace: boolean
  command(program: readonly string[], launch: Launch): readonly string[]
}

interface Programs {
  readonly bwrap: string | undefined
  readonly setpriv: string | undefined
  readonly unshare: string | undefined
  readonly prlimit: string | undefined
  readonly perl: string | undefined
  /** File descriptors the daemon inherited, which every program would inherit too. */
  readonly inherited: readonly string[]
}
type SystemFolders = ReturnType<typeof systemFolders>

/**
 * Drops the capabilities of root. The daemon then has capabilities that the program lacks, so the program cannot read
 * the daemon's memory.
 */
const dropCapabilities = ['--inh-caps=-all', '--bounding-set=-all']
/** A PID namespace: the program sees no other process, and all of them end with the first. */
const pidNamespace = ['--user', '--map-current-user', '--pid', '--fork', '--mount-proc', '--kill-child', '--ipc']

/**
 * The strongest confinement this system supports: bubblewrap, else Landlock, else none. `works` runs a command to find
 * out, because many containers forbid namespaces.
 */
export async function createLauncher(works: (command: readonly string[]) => Promise<boolean>): Promise<Launcher> {
  if (process.platform !== 'linux') return unconfined(undefined, 'this system has neither bubblewrap nor Landlock')
  const [bwrap, setpriv, unshare, prlimit, perl] = await Promise.all(
    ['bwrap', 'setpriv', 'unshare', 'prlimit', 'perl'].map(find),
  )
  const system: System = {
    programs: { bwrap, setpriv, unshare, prlimit, perl, inherited: await inheritedFiles() },
    folders: systemFolders(),
    works,
  }
  return (
    (await tryBubblewrap(system)) ??
    (await tryLandlock(system)) ??
    unconfined(system.programs, 'neither bubblewrap nor Landlock works on this machine')
  )
}

interface System {
  readonly programs: Programs
  readonly folders: SystemFolders
  readonly works: (command: readonly string[]) => Promise<boolean>
}
/** Launched to find out whether a confinement works on this machine. */
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
const sharedKernel = 'programs share the kernel of this machine, so a kernel vulnerability is a way out'

async function tryBubblewrap({ programs, folders, works }: System): Promise<Launcher | undefined> {
  const { bwrap, perl } = programs
  if (bwrap === undefined || !(await works(bubblewrap(programs, folders, ['/bin/true'], trial, false))))
    return undefined
  return {
    isolation: {
      level: 'bubblewrap',
      network: perl === undefined ? 'none' : 'proxy',
      gaps: [
        sharedKernel,
        ...(perl === undefined
          ? ['without perl no program has a network, and one that starts while the daemon is killed can outlive it']
          : []),
        ...inheritedGaps(programs),
      ],
    },
    pipes: true,
    filter: socketFilter(namespacedFamilies),
    hasPidNamespace: true,
    command: (program, launch) => bubblewrap(programs, folders, program, launch, true),
  }
}

async function tryLandlock({ programs, folders, works }: System): Promise<Launcher | undefined> {
  const { perl, setpriv, unshare } = programs
  // A seccomp filter that denies every socket takes the network away here: Landlock alone would leave a way out.
  if (perl === undefined || setpriv === undefined || seccompNumber() === undefined) return undefined
  const covers = (version: number): Promise<boolean> =>
    works([perl, '-e', `exit(syscall(444, 0, 0, 1) < ${version} ? 1 : 0)`])
  for (const namespaces of unshare === undefined ? [false] : [true, false]) {
    if (!(await works(landlock(programs, folders, ['/bin/true'], trial, namespaces)))) continue
    return {
      isolation: {
        level: 'landlock',
        network: 'none',
        gaps: await landlockGaps(covers, namespaces),
      },
      pipes: false,
      filter: undefined,
      hasPidNamespace: namespaces,
      command: (program, launch) => landlock(programs, folders, program, launch, namespaces),
    }
  }
  return undefined
}

/** `covers`: whether the kernel has this version of Landlock. */
async function landlockGaps(
  covers: (version: number) => Promise<boolean>,
  namespaces: boolean,
): Promise<readonly string[]> {
  const gaps = [
    'programs have no network, not even 127.0.0.1: that needs bubblewrap',
    sharedKernel,
    'programs see names, sizes and permissions of all files, and can change permissions of files of their user',
  ]
  if (!(await covers(3)))
    gaps.push('this kernel is older than 6.2: programs can truncate files that the user of the daemon may write')
  if (namespaces) return gaps
  gaps.push('programs go on when the daemon is killed')
  if (!(await covers(6))) gaps.push('this kernel is older than 6.12: programs can kill the daemon')
  gaps.push(
    'programs see the command lines of other processes',
    'a process that leaves its process group and clears its environment can outlive its program',
  )
  return gaps
}

/** Only resource limits, and no capabilities for root. */
function unconfined(programs: Programs | undefined, why: string): Launcher {
  return {
    isolation: {
      level: 'none',
      network: 'host',
      gaps: [`${why}: a program can do everything that the user of the daemon can`, ...inheritedGaps(programs)],
    },
    pipes: false,
    filter: undefined,
    hasPidNamespace: false,
    command: (program, launch) =>
      programs === undefined
        ? program
        : [...closeInherited(programs), ...noNewPrivileges(programs), ...limits(programs, launch), ...program],
  }
}

/** Node marks files it opens as close-on-exec; files it inherited stay open in its children. */
function closeInherited({ perl, inherited }: Programs, pipes = false): readonly string[] {
  // The pipes replace descriptors with the same numbers.
  const foreign = inherited.filter((file) => !pipes || Number(file) > FILTER_FD)
  return perl === undefined || foreign.length === 0
    ? []
    : perlWords(perl, closeFiles, [String(foreign.length), ...foreign])
}
function inheritedGaps(programs: Programs | undefined): readonly string[] {
  return programs && programs.perl === undefined && programs.inherited.length > 0
    ? [`without perl, programs inherit files that the daemon inherited (${programs.inherited.join(', ')})`]
    : []
}
/** Descriptors of open files without O_CLOEXEC, which a started program inherits. */
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
  folders: SystemFolders,
  program: readonly string[],
  launch: Launch,
  pipes: boolean,
): readonly string[] {
  const { bwrap = 'bwrap', perl } = programs
  const { folder, operator, proxy, confinesItself } = launch
  const inside =
    perl === undefined
      ? program
      : operator || proxy === undefined
        ? perlWords(perl, startWithDaemon, program)
        : perlWords(perl, bridgePort, [proxySocket, String(programProxyPort), ...program])
  return [
    ...closeInherited(programs, pipes),
    ...limits(programs, launch),
    bwrap,
    '--unshare-user',
    ...(confinesItself && process.getuid?.() === 0 ? ['--uid', NOBODY, '--gid', NOBODY] : []),
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(operator ? [] : ['--unshare-net', ...(confinesItself ? [] : ['--disable-userns'])]),
    '--die-with-parent',
    // Its own session has no terminal, and its own group gets SIGTERM while bubblewrap waits.
    '--new-session',
    '--cap-drop',
    'ALL',
    ...(pipes ? ['--info-fd', String(INFO_FD), '--sync-fd', String(END_FD)] : []),
    ...(pipes && !operator && socketFilter(namespacedFamilies) !== undefined ? ['--seccomp', String(FILTER_FD)] : []),
    ...(operator ? wholeSystem(launch) : confinedSystem(launch, folders)),
    '--chdir',
    folder,
    '--',
    ...inside,
  ]
}

/** System folders to read, its own folder to write, and nothing else. A later mount covers an earlier one. */
function confinedSystem({ folder, read, write, hidden, proxy }: Launch, folders: SystemFolders): readonly string[] {
  const visible = [...folders.filter(({ link }) => link === undefined).map(({ path }) => path), ...read]
  return [
    ...folders.flatMap(({ path, link }) =>
      link === undefined ? ['--ro-bind', path, path] : ['--symlink', link, path],
    ),
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    ...memory('/dev/shm', SHARED_MEMORY_BYTES),
    '--remount-ro',
    '/dev',
    ...memory('/tmp', TMP_BYTES),
    ...shallowFirst(read).flatMap((path) => ['--ro-bind', path, path]),
    ...hidden.flatMap((each) => (visible.some((path) => within(each, path)) ? ['--tmpfs', each] : [])),
    ...shallowFirst(write).flatMap((path) => ['--bind', path, path]),
    '--bind',
    folder,
    folder,
    ...(proxy === undefined ? [] : ['--ro-bind', proxy, proxySocket]),
    '--remount-ro',
    '/',
  ]
}

/** The whole system except for hidden folders and those that code or configuration is loaded from. */
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
  folders: SystemFolders,
  program: readonly string[],
  launch: Launch,
  namespaces: boolean,
): readonly string[] {
  const { setpriv = 'setpriv', unshare = 'unshare', perl = 'perl' } = programs
  const { operator } = launch
  const rules = landlockRules(launch, folders)
  const filter = operator ? undefined : socketFilter([])
  return [
    ...closeInherited(programs),
    setpriv,
    '--no-new-privs',
    '--pdeathsig',
    'KILL',
    '--',
    ...(namespaces ? [unshare, ...pidNamespace, ...(operator ? [] : ['--net']), '--'] : []),
    ...(process.getuid?.() === 0 ? [setpriv, ...dropCapabilities, '--'] : []),
    ...limits(programs, launch),
    ...perlWords(perl, enterLandlock, [
      String(rules.length / 2),
      ...rules,
      operator ? 'open' : 'closed',
      filter === undefined ? '0' : String(seccompNumber()),
      filter?.toString('hex') ?? '',
      namespaces ? 'first' : 'only',
      ...program,
    ]),
  ]
}

/**
 * Pairs of rights and path, as `enterLandlock` expects them. Landlock only grants rights: a folder with exceptions is
 * granted entry by entry.
 */
function landlockRules(
  { folder, operator, read, write, hidden, code }: Launch,
  folders: SystemFolders,
): readonly string[] {
  const covered = hidden.map(realPath)
  const readFrom = operator
    ? ['/']
    : [...folders.flatMap(({ path, link }) => (link === undefined ? [path] : [])), '/proc', ...read]
  // Untrusted input may steer a program of the operator: it must not change what the daemon loads.
  const writable = operator ? without('/', [...covered, ...code]) : []
  return [
    ...readFrom.flatMap((path) => without(path, covered)).flatMap((path) => ['r', path]),
    ...writable.flatMap((path) => ['w', path]),
    ...devices.flatMap((path) => ['d', path]),
    ...(operator ? read : []).flatMap((path) => ['r', path]),
    ...[...write, folder].flatMap((path) => ['w', path]),
  ]
}

function noNewPrivileges({ setpriv }: Programs): readonly string[] {
  if (setpriv === undefined) return []
  return [setpriv, '--no-new-privs', '--pdeathsig', 'KILL', ...(process.getuid?.() === 0 ? dropCapabilities : []), '--']
}

/**
 * Enough for real work, too little for a runaway. `--as` limits what it may reserve, `--data` what it may use: a browser
 * reserves terabytes.
 */
function limits(
  { prlimit }: Pick<Programs, 'prlimit'>,
  { timeoutMs, confinesItself }: Pick<Launch, 'timeoutMs' | 'confinesItself'>,
): readonly string[] {
  if (prlimit === undefined) return []
  const gib = 1024 ** 3
  return [
    prlimit,
    '--core=0',
    `--cpu=${Math.ceil(timeoutMs / 1000) + 5}`,
    `--as=${confinesItself ? 'unlimited' : 64 * gib}`,
    `--data=${4 * gib}`,
    '--nproc=4096',
    '--nofile=1024',
    `--fsize=${gib}`,
    '--',
  ]
}

async function find(name: string): Promise<string | undefined> {
  for (const folder of safePath) {
    const path = `${folder}${sep}${name}`
    try {
      await access(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder.
    }
  }
  return undefined
}
