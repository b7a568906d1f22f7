import { closeSync, openSync, readSync } from 'node:fs'
import { mkdtemp, readdir, readlink, realpath, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { Refusal } from 'svc/sdk'
import type { SpawnRequest } from 'svc/sdk'
import type { Finding, ProbeCase } from '../contract.ts'
import type { ProbeTools } from '../probes.ts'

/** All that a program may find in its environment; a shell adds the last four by itself. */
const names = new Set([
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
const folders =
  /^(?:\/(?:usr\/)?(?:local\/)?s?bin|\/opt\/homebrew\/bin)(?::(?:\/(?:usr\/)?(?:local\/)?s?bin|\/opt\/homebrew\/bin))*$/
/** Tries to make a file in each folder of the first part, and to list each of the rest. */
const reach = `: > own && echo --own
n=$1; shift
while [ "$n" -gt 0 ]; do f="$1/.svc-probe-$$"; if (: > "$f") 2>/dev/null; then rm -f "$f"; echo "--wrote $1"; fi; shift; n=$((n-1)); done
for d do if ls "$d" >/dev/null 2>&1; then echo "--saw $d"; fi; done
echo --end`
/** One request through the proxy, and the first line of its answer. */
const ask = `use Socket; my ($host) = $ARGV[0] =~ m{^http://([^/]+)};
socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in(3128, INADDR_LOOPBACK)) or exit 1;
syswrite $s, "GET $ARGV[0] HTTP/1.1\\r\\nHost: $host\\r\\nConnection: close\\r\\n\\r\\n"; sysread $s, my $got, 4096; print $got`
const trick = '; echo pwn $(id) `id` && x'

/** Real programs through the one door to them. */
export async function probe({ spawn, ownPort }: ProbeTools, signal: AbortSignal): Promise<Finding> {
  if (process.platform === 'win32') return { cases: [], evidence: 'not tried on this system', tried: false }
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'svc-probe-')))
  const run = async (
    command: string,
    args: readonly string[],
    more: Partial<SpawnRequest> = {},
  ): Promise<{ text: string; reason: string }> => {
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
  try {
    // Its own environment, an argument full of shell, and what it can see of the daemon and of the process above it, in
    // one program.
    const script = `env; echo "--arg $1"; echo "--space $(readlink /proc/self/ns/pid)"; (exec 9<"/proc/$2/mem") 2>/dev/null && echo --memory; echo --parent; { tr '\\0' '\\n' < /proc/$PPID/environ; } 2>/dev/null | sed -n 's/=..*//p'`
    const sleeper = `61.${String(process.hrtime.bigint() % 1_000_000n).padStart(6, '0')}`
    const isolation = await spawn.isolation()
    const confined = isolation.level !== 'none'
    const { code, hidden } = spawn.protectedFolders()
    const closed = [...code, ...hidden, '/etc', '/usr/local/bin']
    const unseen = [...hidden, homedir(), '/root', '/home', '/srv']
    const port = ownPort.host()
    const [seen, forked, reached, asked] = await Promise.all([
      run('sh', ['-c', script, 'sh', trick, String(process.pid)]),
      run('sh', ['-c', `sleep ${sleeper} & sleep ${sleeper}`], { timeoutMs: 200 }),
      run('sh', ['-c', reach, 'sh', String(closed.length), ...closed, ...unseen]),
      isolation.network === 'proxy' && port !== undefined
        ? run('perl', ['-e', ask, `http://${port}/api/health`], {
            network: () => {
              throw new Refusal('forbidden', 'not this one')
            },
          })
        : undefined,
    ])
    const wrote = reached.text.split('\n').filter((line) => line.startsWith('--wrote '))
    const saw = reached.text.split('\n').filter((line) => line.startsWith('--saw '))
    const own = seen.text
      .slice(0, seen.text.indexOf('--arg'))
      .split('\n')
      .filter((line) => line.includes('='))
    const environment = new Map(
      own.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    const foreign = [...environment.keys()].filter((name) => !names.has(name))
    const above = seen.text
      .slice(seen.text.indexOf('--parent'))
      .split('\n')
      .slice(1)
      .filter((name) => name !== '' && !names.has(name))
    const isApart = await isInSpaceOfItsOwn(/--space (\S+)/.exec(seen.text)?.[1])
    const exposed = spawn.exposed()
    const cases: ProbeCase[] = [
      {
        name:
          foreign.length === 0
            ? "nothing of the daemon's environment is passed on"
            : `passed on: ${foreign.slice(0, 5).join(', ')}`,
        held: seen.text.includes('--arg') && foreign.length === 0,
      },
      { name: 'its home is its folder', held: environment.get('HOME') === folder },
      { name: 'programs are looked for in safe folders', held: folders.test(environment.get('PATH') ?? '') },
      // Without a space of its own that is the daemon, of which it may see what is no secret.
      { name: 'nor is anything in the process above it', held: above.length === 0 || !isApart },
      {
        name:
          exposed.names.length === 0
            ? 'no secret is in the environment the daemon was started with'
            : `still there: ${exposed.names.slice(0, 5).join(', ')}`,
        held: exposed.names.length === 0 || exposed.because !== undefined,
      },
      { name: 'an argument reaches it as it is', held: seen.text.includes(`--arg ${trick}`) },
      { name: 'it is ended when its time is up', held: forked.reason === 'timeout' },
      { name: 'what it started is gone with it', held: await isGone(sleeper) },
    ]
    if (confined) {
      cases.push(
        { name: 'it writes to its folder', held: reached.text.includes('--own') },
        {
          name:
            wrote.length === 0
              ? 'it writes to no folder of code, configuration or the system'
              : `it wrote to ${wrote.length} folders of code, configuration or the system`,
          held: reached.text.includes('--end') && wrote.length === 0,
        },
        {
          name: saw.length === 0 ? 'it lists no home, that of the daemon included' : `it listed ${saw.length} homes`,
          held: reached.text.includes('--end') && saw.length === 0,
        },
      )
      if (asked) cases.push({ name: 'its way to the network asks first', held: asked.text.includes(' 403 ') })
    } else
      cases.push({
        name: 'no program of an agent runs where none can be confined',
        held: await isRefused(() => run('true', [], { unconfined: false })),
      })
    for (const [name, env] of Object.entries({ LD_PRELOAD: 'x', NODE_OPTIONS: 'x', HTTPS_PROXY: 'x', MY_API_KEY: 'x' }))
      cases.push({ name: `${name} is refused`, held: await isRefused(() => run('true', [], { env: { [name]: env } })) })
    cases.push({ name: 'a program above its folder is refused', held: await isRefused(() => run('../true', [])) })
    // A program that can look into the daemon reads every secret there, whatever its environment.
    const canLook = !isApart && seen.text.includes('--memory')
    const stays = exposed.names.length > 0
    return {
      cases,
      weaker: canLook || stays || !confined,
      evidence: [
        `isolation: ${isolation.level}`,
        `network: ${isolation.network}`,
        `not covered: ${isolation.gaps.join(', ')}`,
        ...(canLook ? ['it can read the memory of the daemon'] : []),
        ...(stays
          ? [`secrets are left in the environment the daemon was started with (${exposed.because ?? ''})`]
          : []),
      ].join('; '),
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function isRefused(attempt: () => Promise<unknown>): Promise<boolean> {
  try {
    await attempt()
    return false
  } catch (error) {
    return error instanceof Refusal && (error.code === 'forbidden' || error.code === 'invalid_request')
  }
}

/** Whether a program with this space of processes sees none of the daemon's. */
async function isInSpaceOfItsOwn(space: string | undefined): Promise<boolean> {
  return process.platform === 'linux' && space !== undefined && space !== (await readlink('/proc/self/ns/pid'))
}

/**
 * Whether no process has this among its arguments. Only Linux tells. Read one after the other into the same memory, a
 * few at a time.
 */
async function isGone(argument: string): Promise<boolean> {
  if (process.platform !== 'linux') return true
  const bytes = Buffer.allocUnsafe(4096)
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  for (const [at, pid] of pids.entries()) {
    if (at % 25 === 24) await turn()
    try {
      const file = openSync(`/proc/${pid}/cmdline`, 'r')
      try {
        if (bytes.toString('latin1', 0, readSync(file, bytes)).split('\0').includes(argument)) return false
      } finally {
        closeSync(file)
      }
    } catch {
      /* Ended meanwhile. */
    }
  }
  return true
}
