import type { ChildProcessByStdio, spawn as SpawnProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'
import type { Dispose, Scope } from '../scope/scope.ts'
import type { Admission, Child, Exit, Spawn, SpawnRequest } from './child.ts'
import { createEnvironment, safePath } from './environment.ts'
import { exposedVariables } from './inherited.ts'
import { noFolders, readable, realPath, refuseCodeWorkspace, writable } from './folders.ts'
import type { DaemonFolders } from './folders.ts'
import type { Launch, Launcher } from './launcher.ts'
import { findProgram, hasProgram } from './program.ts'
import { killOrphanProcesses } from './orphan-processes.ts'
import { Tail } from './tail.ts'

const TIMEOUT_MS = 30_000
const MOST_TIMEOUT_MS = 120_000
const OUTPUT_BYTES = 1_048_576
/** Between asking a program to end and making it. */
const GRACE_MS = 3000
/** Output that is still in the pipe when a program has ended. */
const LAST_WORDS_MS = 1000
const MOST_CHILDREN = 64

type Process = ChildProcessByStdio<Writable | null, Readable, Readable>

/** A way to the network for one program. */
export interface ProgramProxy {
  /** The socket file it listens on. */
  readonly socket: string
  /** Ends connections that would not be permitted any more. */
  recheck(): Promise<void>
  close(): Promise<void>
}
export interface SpawnParts {
  /** Folders of the daemon that no program of an agent sees or changes. */
  readonly folders?: DaemonFolders
  /** How programs are kept apart. */
  readonly offer?: () => Promise<Launcher>
  /** Opens the way to the network for one program. Absent: none has a network. */
  readonly openProxy?: (admits: Admission) => Promise<ProgramProxy>
}

/** Found out when the first program is started, once for the process: what the system offers does not change. */
let offered: Promise<Launcher> | undefined
const offerOfSystem = (): Promise<Launcher> =>
  (offered ??= import('./launcher.ts').then(({ launcher }) => launcher(works)))

/** The door of one plugin: every child is an entry in its ledger. */
export function createSpawn(
  scope: Scope,
  { folders = noFolders, offer = offerOfSystem, openProxy }: SpawnParts = {},
): Spawn {
  let running = 0
  return {
    find: findProgram,
    has: hasProgram,
    isolation: async () => (await offer()).isolation,
    checkFolders(kind, key, named) {
      for (const folder of named) (kind === 'read' ? readable : writable)(folder, key, folders)
    },
    checkWorkspace: (folder) => refuseCodeWorkspace(folder, folders),
    protectedFolders: () => ({ code: folders.code.map(({ path }) => path), hidden: folders.hidden }),
    exposed: exposedVariables,
    async start(request) {
      const { signal } = request
      signal?.throwIfAborted()
      if (request.background && request.timeoutMs === undefined)
        throw new Error('a program in the background needs a time limit of its own')
      if (!isAbsolute(request.cwd)) throw new Error('a program starts in an absolute folder')
      if (request.home !== undefined && !isAbsolute(request.home))
        throw new Error('the home of a program is an absolute folder')
      if (running >= MOST_CHILDREN)
        throw new Refusal('rate_limit', `${MOST_CHILDREN} programs of this plugin run already`, { retryAfterSecs: 5 })
      if (scope.state !== 'open')
        throw new Refusal('service_unavailable', 'No program is started any more: its plugin is being unloaded')
      running++
      let child: Running
      let proxy: ProgramProxy | undefined
      try {
        const program = await findProgram(request.command, request.cwd, request.path)
        const temporary = join(request.cwd, '.tmp')
        await mkdir(temporary, { recursive: true, mode: 0o700 })
        const wrap = await offer()
        const launch = readLaunch(request, wrap, folders)
        if (request.network && wrap.isolation.network === 'proxy' && !launch.operator)
          proxy = await openProxy?.(request.network)
        const { spawn } = await import('node:child_process')
        child = new Running(
          spawn,
          wrap,
          program.path,
          { ...launch, proxy: proxy?.socket },
          temporary,
          proxy === undefined ? {} : (await import('./launcher.ts')).proxyVariables,
          request,
          proxy,
        )
        await child.started
      } catch (error) {
        running--
        await proxy?.close()
        throw error
      }
      // The scope may have closed meanwhile, and then takes nothing any more.
      const disown: Dispose | undefined =
        scope.state === 'open'
          ? scope.own('process', `${request.command} ${child.pid}`, async () => {
              await child.kill()
            })
          : undefined
      void child.ended.then(async () => {
        running--
        await proxy?.close()
        return disown?.()
      })
      if (signal?.aborted || !disown) void child.kill()
      return child
    },
  }
}

/**
 * What the program gets of this machine. Folders are looked at anew: a link may lead elsewhere than when they were
 * checked first.
 */
function readLaunch(request: SpawnRequest, { isolation }: Launcher, folders: DaemonFolders): Launch {
  const { cwd, home, read = [], write = [], path = [], timeoutMs, background } = request
  const common = {
    timeoutMs: background ? (timeoutMs ?? TIMEOUT_MS) : Math.min(timeoutMs ?? TIMEOUT_MS, MOST_TIMEOUT_MS),
    folder: realPath(cwd),
    hidden: folders.hidden.map(realPath),
    code: folders.code.filter(({ shallow }) => shallow !== true).map(({ path: each }) => realPath(each)),
    proxy: undefined,
  }
  if (request.trust === 'operator')
    return {
      ...common,
      operator: true,
      read: path.filter((folder) => existsSync(folder)),
      write: [...(home === undefined ? [] : [home]), ...write],
    }
  refuseCodeWorkspace(cwd, folders)
  if (isolation.level === 'none' && request.unconfined !== true) throw refusedUnconfined(isolation.gaps)
  return {
    ...common,
    operator: false,
    read: [...path.filter((folder) => existsSync(folder)), ...read].map((folder) => readable(folder, 'read', folders)),
    write: write.map((folder) => writable(folder, 'write', folders)),
  }
}

function refusedUnconfined(gaps: readonly string[]): Refusal {
  enforced('subprocess_sandbox')
  return new Refusal(
    'forbidden',
    `No program of an agent runs here, because none could be confined: ${gaps.join('; ')}. Install bubblewrap, or set plugins.shell.unconfined in the file to run them all the same`,
  )
}

/** Whether a command ends well. */
export async function works([command = '', ...args]: readonly string[]): Promise<boolean> {
  const { execFile } = await import('node:child_process')
  return await new Promise((resolve) => {
    execFile(command, args, { timeout: 2000, env: { PATH: safePath.join(':') }, windowsHide: true }, (error) =>
      resolve(!error),
    )
  })
}

/** How a program of the system ended. */
export interface ProgramResult {
  readonly code: number | 'not-found' | undefined
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program of the system for the operator who typed a command; nothing that a plugin names. */
export async function runSystemProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<ProgramResult> {
  const { execFile } = await import('node:child_process')
  return await new Promise((resolve) => {
    execFile(program, args, { env: { ...env }, timeout: 120_000 }, (error, stdout, stderr) => {
      if (error === null) resolve({ code: 0, stdout, stderr })
      else if (error.code === 'ENOENT') resolve({ code: 'not-found', stdout, stderr })
      else resolve({ code: Number(error.code) || undefined, stdout, stderr: stderr || error.message })
    })
  })
}

class Running implements Child {
  readonly pid: number
  readonly started: Promise<void>
  readonly ended: Promise<Exit>
  readonly #process: Process
  readonly #tail: Tail
  readonly #mark: string
  readonly #isolated: boolean
  readonly #proxy: ProgramProxy | undefined
  #reason: Exit['reason'] = 'exit'
  #exited = false
  /** The first process of its space, which leads a group of its own. */
  #first = 0
  /** Settles when nothing of its space is left. */
  #spaceEnded: Promise<void> | undefined
  #insist: NodeJS.Timeout | undefined
  #silence: NodeJS.Timeout | undefined

  constructor(
    spawn: typeof SpawnProcess,
    wrap: Launcher,
    path: string,
    launch: Launch,
    temporary: string,
    network: Readonly<Record<string, string>>,
    request: SpawnRequest,
    proxy: ProgramProxy | undefined,
  ) {
    this.#proxy = proxy
    const startedAt = performance.now()
    this.#mark = crypto.randomUUID()
    this.#isolated = wrap.space
    this.#tail = new Tail(request.outputBytes ?? OUTPUT_BYTES)
    const [file = path, ...args] = wrap.words([path, ...(request.args ?? [])], launch)
    const env = createEnvironment({
      home: request.home ?? request.cwd,
      temporary,
      path: request.path ?? [],
      extra: request.env ?? {},
      approved: request.approvedEnv ?? [],
    })
    // The mark lets a program be found that left its group, where no namespace holds it.
    this.#process = spawn(file, args, {
      cwd: request.cwd,
      env: { ...env, ...network, SVC_PROCESS: this.#mark },
      shell: false,
      detached: process.platform !== 'win32',
      windowsHide: true,
      stdio: [
        request.input === 'open' ? 'pipe' : 'ignore',
        'pipe',
        'pipe',
        ...(wrap.pipes ? (['pipe', 'pipe', 'pipe'] as const) : []),
      ],
    }) as Process
    this.pid = this.#process.pid ?? 0
    if (wrap.pipes) this.#listenToSpace(launch.operator ? undefined : wrap.filter)
    // Writing to a program that is gone is told by `write`, not by an event nobody hears.
    this.#process.stdin?.on('error', () => undefined)
    this.started = new Promise((resolve, reject) => {
      this.#process.once('spawn', resolve)
      this.#process.once('error', (error) =>
        reject(
          new Refusal('invalid_request', `The program "${request.command}" could not be started`, { cause: error }),
        ),
      )
    })
    const timer = setTimeout(() => {
      enforced('subprocess_sandbox')
      this.#end('timeout')
    }, launch.timeoutMs)
    timer.unref()
    const heard = (chunk: Buffer, from: 'stdout' | 'stderr'): void => {
      this.#tail.add(chunk)
      request.heard?.(chunk, from)
      this.#listen(request.silenceMs)
    }
    this.#process.stdout.on('data', (chunk: Buffer) => heard(chunk, 'stdout'))
    this.#process.stderr.on('data', (chunk: Buffer) => heard(chunk, 'stderr'))
    this.#listen(request.silenceMs)
    const byCaller = (): void => this.#end('killed')
    request.signal?.addEventListener('abort', byCaller, { once: true })
    this.ended = new Promise((resolve) => {
      const finish = (code: number | null, signal: string | null): void => {
        clearTimeout(timer)
        clearTimeout(this.#silence)
        clearTimeout(this.#insist)
        request.signal?.removeEventListener('abort', byCaller)
        resolve({ code, signal, reason: this.#reason, durationMs: performance.now() - startedAt })
      }
      this.#process.once('error', () => finish(null, null))
      this.#process.once('exit', (code, signal) => {
        this.#exited = true
        void this.#leaveNothing().then(() => finish(code, signal))
      })
    })
  }

  get running(): boolean {
    return !this.#exited
  }

  write(text: string | Uint8Array): Promise<void> {
    const { stdin } = this.#process
    if (!stdin || stdin.destroyed || this.#exited)
      return Promise.reject(new Refusal('conflict', 'The program does not read input any more'))
    return new Promise((resolve, reject) => {
      stdin.write(text, (error) =>
        error
          ? reject(new Refusal('conflict', 'The program does not read input any more', { cause: error }))
          : resolve(),
      )
    })
  }
  closeInput(): void {
    this.#process.stdin?.end()
  }
  read(): { readonly text: string; readonly droppedBytes: number } {
    return this.#tail.take()
  }
  async recheckNetwork(): Promise<void> {
    await this.#proxy?.recheck()
  }
  kill(): Promise<Exit> {
    this.#end('killed')
    return this.ended
  }

  #listen(silenceMs: number | undefined): void {
    if (silenceMs === undefined || this.#exited) return
    if (this.#silence) this.#silence.refresh()
    else this.#silence = setTimeout(() => this.#end('silence'), silenceMs).unref()
  }

  #end(reason: Exit['reason']): void {
    if (this.#exited || this.#insist) return
    this.#reason = reason
    this.#signal('SIGTERM', this.#first || this.pid)
    // Not unref'd: a daemon that is stopping waits until nothing of it is left.
    this.#insist = setTimeout(() => this.#signal('SIGKILL'), GRACE_MS)
  }
  /** To a whole group. */
  #signal(signal: NodeJS.Signals, group = this.pid): void {
    if (this.pid === 0) return
    try {
      if (process.platform === 'win32') this.#process.kill(signal)
      else process.kill(-group, signal)
    } catch (error) {
      // All of the group are gone already.
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
    }
  }

  /**
   * bubblewrap says who is first in the space, holds the second pipe open as long as there is anyone in it, and reads
   * its filter.
   */
  #listenToSpace(filter: Uint8Array | undefined): void {
    const [, , , info, end, wants] = this.#process.stdio as readonly (Readable | Writable | null | undefined)[]
    let facts = ''
    ;(info as Readable).on('data', (bytes: Buffer) => {
      facts += bytes.toString()
      this.#first = Number(/"child-pid"\s*:\s*(\d+)/.exec(facts)?.[1] ?? 0)
    })
    // Ends with the process, of which `error` and `exit` tell.
    for (const pipe of [info, end, wants]) pipe?.on('error', () => undefined)
    this.#spaceEnded = new Promise((resolve) => {
      end?.once('close', () => resolve())
    })
    ;(end as Readable).resume()
    ;(wants as Writable).end(filter)
  }

  /** Whatever it started ends with it; then what is in the pipes is read. */
  async #leaveNothing(): Promise<void> {
    this.#signal('SIGKILL')
    if (!this.#isolated) await killOrphanProcesses(this.#mark)
    const { stdout, stderr } = this.#process
    const closed = Promise.all([
      this.#spaceEnded,
      ...[stdout, stderr].map((stream) =>
        stream.closed
          ? undefined
          : new Promise((resolve) => {
              stream.once('close', resolve)
            }),
      ),
    ])
    let timer: NodeJS.Timeout | undefined
    await Promise.race([
      closed,
      new Promise((resolve) => {
        timer = setTimeout(resolve, LAST_WORDS_MS)
      }),
    ])
    clearTimeout(timer)
    for (const stream of this.#process.stdio as readonly (Readable | Writable | null | undefined)[]) stream?.destroy()
  }
}
