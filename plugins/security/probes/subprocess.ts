import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { mkdtemp, readdir, readlink, realpath, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { Refusal } from 'svc/sdk'
import type { Isolation, Spawn, SpawnRequest } from 'svc/sdk'
import type { Finding, ProbeCase } from '../contract.ts'
import type { ProbeTools } from '../probes.ts'

/** Every variable a program may find in its environment; a shell adds the last four itself. */
const allowedVariables = new Set([
  'LANG',
  'LC_ALL',
  'TERM',
  'PATH',
  'HOME',
  'TMPDIR',
  'TMP',
  'TEMP',
  'SVC_PROCESS',
  'PWD',
  'OLDPWD',
  'SHLVL',
  '_',
])
const safeFolder = String.raw`(?:\/(?:usr\/)?(?:local\/)?s?bin|\/opt\/homebrew\/bin)`
const safePath = new RegExp(`^${safeFolder}(?::${safeFolder})*$`)
/** Prints an argument, and what the program reads of the daemon and of its parent process. */
const environmentScript = `env
echo "--arg $1"
echo "--space $(readlink /proc/self/ns/pid)"
(exec 9<"/proc/$2/mem") 2>/dev/null && echo --memory
echo --parent
{ tr '\\0' '\\n' < /proc/$PPID/environ; } 2>/dev/null | sed -n 's/=..*//p'`
/** Tries to create the file `$1` in each of the next `$2` folders, and to list the others. */
const folderScript = `: > own && echo --own
f=$1; n=$2; shift 2
while [ "$n" -gt 0 ]; do
(: > "$1/$f") 2>/dev/null
shift; n=$((n-1))
done
for d do if ls "$d" >/dev/null 2>&1; then echo "--saw $d"; fi; done
echo --end`
/** Sends one request through the proxy and prints the answer. */
const requestScript = `use Socket; my ($host) = $ARGV[0] =~ m{^http://([^/]+)};
socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in(3128, INADDR_LOOPBACK)) or exit 1;
syswrite $s, "GET $ARGV[0] HTTP/1.1\\r\\nHost: $host\\r\\nConnection: close\\r\\n\\r\\n";
sysread $s, my $got, 4096; print $got`
const injection = '; echo pwn $(id) `id` && x'
const FORBIDDEN_VARIABLES = ['LD_PRELOAD', 'NODE_OPTIONS', 'HTTPS_PROXY', 'MY_API_KEY']

interface ProgramOutput {
  readonly text: string
  readonly reason: string
}
type Run = (command: string, args: readonly string[], more?: Partial<SpawnRequest>) => Promise<ProgramOutput>

/** Starts real programs through the one function that starts programs. */
export async function probe(tools: ProbeTools, signal: AbortSignal): Promise<Finding> {
  if (process.platform === 'win32') return { cases: [], evidence: 'not tried on this system', skipped: true }
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-probe-')))
  try {
    return await probeIn(folder, tools, signal)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function probeIn(folder: string, { spawn, ownPort }: ProbeTools, signal: AbortSignal): Promise<Finding> {
  const run = createRun(spawn, folder, signal)
  const isolation = await spawn.isolation()
  const confined = isolation.level !== 'none'
  const sleepSeconds = `61.${String(process.hrtime.bigint() % 1_000_000n).padStart(6, '0')}`
  const [environment, forked, reached, request] = await Promise.all([
    run('sh', ['-c', environmentScript, 'sh', injection, String(process.pid)]),
    run('sh', ['-c', `sleep ${sleepSeconds} & sleep ${sleepSeconds}`], { timeoutMs: 200 }),
    runFolderScript(run, spawn),
    runRequestScript(run, isolation, ownPort.host()),
  ])
  const exposed = spawn.exposed()
  const isApart = await hasOwnPidNamespace(/--space (\S+)/.exec(environment.text)?.[1])
  const cases: ProbeCase[] = [
    ...environmentCases(environment.text, folder, isApart),
    exposureCase(exposed),
    { name: 'an argument reaches it as it is', passed: environment.text.includes(`--arg ${injection}`) },
    { name: 'it is ended when its time is up', passed: forked.reason === 'timeout' },
    { name: 'what it started is gone with it', passed: await isGone(sleepSeconds) },
    ...(confined ? folderCases(reached) : [await unconfinedCase(run)]),
    ...(confined && request
      ? [{ name: 'its way to the network asks first', passed: request.text.includes(' 403 ') }]
      : []),
    ...(await refusalCases(run)),
  ]
  // A program that can read the memory of the daemon reads every secret there, whatever its environment.
  const readsMemory = !isApart && environment.text.includes('--memory')
  return {
    cases,
    degraded: readsMemory || exposed.names.length > 0 || !confined,
    evidence: describeIsolation(isolation, readsMemory, exposed),
  }
}

function createRun(spawn: Spawn, folder: string, signal: AbortSignal): Run {
  return async (command, args, more = {}) => {
    const child = await spawn.start({
      command,
      args,
      cwd: folder,
      unconfined: true,
      timeoutMs: 1500,
      outputBytes: 65_536,
      signal,
      ...more,
    })
    const { reason } = await child.ended
    return { text: child.read().text, reason }
  }
}

interface FoldersReached {
  readonly text: string
  /** In how many of the folders it must not write to its file is. A program may write to a `/tmp` of its own. */
  readonly written: number
}
async function runFolderScript(run: Run, spawn: Spawn): Promise<FoldersReached> {
  const { code, hidden } = spawn.protectedFolders()
  const notWritable = [...code, ...hidden, '/etc', '/usr/local/bin']
  const notReadable = [...hidden, homedir(), '/root', '/home', '/srv']
  const file = `.svc-probe-${randomUUID()}`
  const { text } = await run('sh', [
    '-c',
    folderScript,
    'sh',
    file,
    String(notWritable.length),
    ...notWritable,
    ...notReadable,
  ])
  const found = await Promise.all(
    notWritable.map((folder) =>
      rm(join(folder, file)).then(
        () => true,
        () => false,
      ),
    ),
  )
  return { text, written: found.filter(Boolean).length }
}

async function runRequestScript(
  run: Run,
  { network }: Isolation,
  host: string | undefined,
): Promise<ProgramOutput | undefined> {
  if (network !== 'proxy' || host === undefined) return undefined
  return run('perl', ['-e', requestScript, `http://${host}/api/health`], {
    network: () => {
      throw new Refusal('forbidden', 'not this one')
    },
  })
}

/** What the program finds in its own environment, and in that of its parent process. */
function environmentCases(output: string, folder: string, isApart: boolean): readonly ProbeCase[] {
  const lines = output
    .slice(0, output.indexOf('--arg'))
    .split('\n')
    .filter((line) => line.includes('='))
  const environment = new Map(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const inherited = [...environment.keys()].filter((name) => !allowedVariables.has(name))
  const ofParent = output
    .slice(output.indexOf('--parent'))
    .split('\n')
    .slice(1)
    .filter((name) => name !== '' && !allowedVariables.has(name))
  return [
    {
      name:
        inherited.length === 0
          ? "nothing of the daemon's environment is passed on"
          : `passed on: ${inherited.slice(0, 5).join(', ')}`,
      passed: output.includes('--arg') && inherited.length === 0,
    },
    { name: 'its home is its folder', passed: environment.get('HOME') === folder },
    { name: 'programs are looked for in safe folders', passed: safePath.test(environment.get('PATH') ?? '') },
    // Without a PID namespace the parent is the daemon, whose variables are no secret.
    { name: 'nor is anything in the process above it', passed: ofParent.length === 0 || !isApart },
  ]
}

function exposureCase({ names, because }: ReturnType<Spawn['exposed']>): ProbeCase {
  return {
    name:
      names.length === 0
        ? 'no secret is in the environment the daemon was started with'
        : `still there: ${names.slice(0, 5).join(', ')}`,
    passed: names.length === 0 || because !== undefined,
  }
}

/** Which folders a confined program wrote to and listed. */
function folderCases({ text: output, written }: FoldersReached): readonly ProbeCase[] {
  const lines = output.split('\n')
  const listed = lines.filter((line) => line.startsWith('--saw ')).length
  const finished = output.includes('--end')
  return [
    { name: 'it writes to its folder', passed: output.includes('--own') },
    {
      name:
        written === 0
          ? 'it writes to no folder of code, configuration or the system'
          : `it wrote to ${written} folders of code, configuration or the system`,
      passed: finished && written === 0,
    },
    {
      name: listed === 0 ? 'it lists no home, that of the daemon included' : `it listed ${listed} homes`,
      passed: finished && listed === 0,
    },
  ]
}

async function unconfinedCase(run: Run): Promise<ProbeCase> {
  return {
    name: 'no program of an agent runs where none can be confined',
    passed: await isRefused(() => run('true', [], { unconfined: false })),
  }
}

async function refusalCases(run: Run): Promise<readonly ProbeCase[]> {
  const cases: ProbeCase[] = []
  for (const name of FORBIDDEN_VARIABLES)
    cases.push({ name: `${name} is refused`, passed: await isRefused(() => run('true', [], { env: { [name]: 'x' } })) })
  cases.push({ name: 'a program above its folder is refused', passed: await isRefused(() => run('../true', [])) })
  return cases
}

function describeIsolation(
  { level, network, gaps }: Isolation,
  readsMemory: boolean,
  { names, because }: ReturnType<Spawn['exposed']>,
): string {
  const evidence = [`isolation: ${level}`, `network: ${network}`, `not covered: ${gaps.join(', ')}`]
  if (readsMemory) evidence.push('it can read the memory of the daemon')
  if (names.length > 0)
    evidence.push(`secrets are left in the environment the daemon was started with (${because ?? ''})`)
  return evidence.join('; ')
}

async function isRefused(attempt: () => Promise<unknown>): Promise<boolean> {
  try {
    await attempt()
    return false
  } catch (error) {
    return error instanceof Refusal && (error.code === 'forbidden' || error.code === 'invalid_request')
  }
}

/** Whether a program with this PID namespace cannot see the processes of the daemon. */
async function hasOwnPidNamespace(namespace: string | undefined): Promise<boolean> {
  return process.platform === 'linux' && namespace !== undefined && namespace !== (await readlink('/proc/self/ns/pid'))
}

/** Whether no process has this argument. Only Linux can answer that. Yields to other work after every 25 processes. */
async function isGone(argument: string): Promise<boolean> {
  if (process.platform !== 'linux') return true
  const buffer = Buffer.allocUnsafe(4096)
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  for (const [index, pid] of pids.entries()) {
    if (index % 25 === 24) await yieldToEventLoop()
    if (readArguments(pid, buffer).includes(argument)) return false
  }
  return true
}

/** Empty when the process has ended. */
function readArguments(pid: string, buffer: Buffer): readonly string[] {
  let file: number
  try {
    file = openSync(`/proc/${pid}/cmdline`, 'r')
  } catch {
    return []
  }
  try {
    return buffer.toString('latin1', 0, readSync(file, buffer)).split('\0')
  } catch {
    return []
  } finally {
    closeSync(file)
  }
}
