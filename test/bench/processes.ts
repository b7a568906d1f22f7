import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))
/** Servers run on one core and the load on another, so that neither takes from the other. */
const pinned = cpus().length > 1 && existsSync('/usr/bin/taskset')

export interface Server extends AsyncDisposable {
  readonly pid: number
  readonly port: number
  readonly startedMs: number
  cpuMs(): number
  /** Microseconds its threads ran, for spans that are short against the ticks of `cpuMs`. */ runUs(): number
  rssMb(): number
  privateMb(): number
  /** What it printed last. */ output(): string
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** Whether `GET path` answers 200 now. */
function answers(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let head = ''
    socket.on('connect', () =>
      socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`),
    )
    socket.on('data', (bytes) => {
      head += bytes.toString('latin1')
    })
    socket.on('error', () => resolve(false))
    socket.on('close', () => resolve(head.startsWith('HTTP/1.1 200')))
  })
}

/** What starts Node on a core. */
export function onCore(core: number): readonly [command: string, args: readonly string[]] {
  return pinned ? ['taskset', ['-c', String(core), process.execPath]] : [process.execPath, []]
}

function run(core: number, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const [command, rest] = onCore(core)
  return spawn(command, [...rest, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: tmpdir(),
  })
}

/** Starts a server script on the first core and polls every millisecond until it answers. */
export async function startServer(
  args: readonly string[],
  options: { readonly port: number; readonly path: string; readonly env?: NodeJS.ProcessEnv; readonly core?: number },
): Promise<Server> {
  const begun = performance.now()
  const child = run(options.core ?? 0, args, { PORT: String(options.port), ...options.env })
  let output = ''
  child.stdout?.on('data', (bytes: Buffer) => {
    output = (output + bytes.toString()).slice(-4000)
  })
  child.stderr?.on('data', (bytes: Buffer) => {
    output = (output + bytes.toString()).slice(-4000)
  })
  while (!(await answers(options.port, options.path))) {
    if (child.exitCode !== null) throw new Error(`${args[0]} exited with ${child.exitCode}: ${output}`)
    if (performance.now() - begun > 30_000) throw new Error(`${args[0]} did not answer: ${output}`)
    await new Promise((resolve) => {
      setTimeout(resolve, 1)
    })
  }
  const startedMs = performance.now() - begun
  const pid = child.pid ?? 0
  const status = (name: string): number =>
    Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  return {
    pid,
    port: options.port,
    startedMs,
    cpuMs: () => {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return (Number(fields[11]) + Number(fields[12])) * 10
    },
    runUs: () =>
      readdirSync(`/proc/${pid}/task`).reduce(
        (sum, task) => sum + Number.parseInt(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8'), 10) / 1000,
        0,
      ),
    rssMb: () => status('VmRSS'),
    privateMb: () => status('RssAnon'),
    output: () => output,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

/** Runs a load script on the second core and returns the JSON it prints. */
export async function load<T>(script: string, options: object): Promise<T> {
  const child = run(1, [join(root, 'test/bench', script), JSON.stringify(options)], {})
  let output = ''
  let failure = ''
  child.stdout?.on('data', (bytes: Buffer) => {
    output += bytes.toString()
  })
  child.stderr?.on('data', (bytes: Buffer) => {
    failure += bytes.toString()
  })
  await once(child, 'exit')
  if (child.exitCode !== 0) throw new Error(`${script}: ${failure}`)
  return JSON.parse(output) as T
}

export class Home implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  constructor(config = '') {
    writeFileSync(join(this.path, 'config.toml'), `${config}\n[rate_limit]\ntokens_per_minute = 1000000000\n`)
  }
  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** `folder` is that of another build than this one. */
export async function startSvc(
  home: Home,
  env: NodeJS.ProcessEnv = {},
  flags: readonly string[] = [],
  folder = root,
): Promise<Server> {
  const port = await freePort()
  return startServer([...flags, join(folder, 'dist/svc.js'), 'start', '--home', home.path, '--port', String(port)], {
    port,
    path: '/api/health',
    env: { SVC_HOME: home.path, ...env },
  })
}
export async function startFloor(script: string, env: NodeJS.ProcessEnv = {}): Promise<Server> {
  return startServer([join(root, 'test/bench/floor', script)], { port: await freePort(), path: '/', env })
}

/** How long so many writes of a page take that each reach the disk before the next, in milliseconds. */
export function syncedWrites(folder: string, count: number): number {
  const file = join(folder, 'synced')
  const handle = openSync(file, 'w')
  const page = Buffer.alloc(4096)
  const begun = performance.now()
  for (let index = 0; index < count; index++) {
    writeSync(handle, page)
    fdatasyncSync(handle)
  }
  const took = performance.now() - begun
  closeSync(handle)
  rmSync(file)
  return took
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
