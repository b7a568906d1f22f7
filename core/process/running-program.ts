import type { ChildProcessByStdio, spawn as SpawnProcess } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'
import type { Child, Exit, SpawnRequest } from './child.ts'
import { createEnvironment } from './environment.ts'
import type { Launch, Launcher } from './launcher.ts'
import { killOrphanProcesses, MARK } from './orphan-processes.ts'
import { Tail } from './tail.ts'

const OUTPUT_BYTES = 1_048_576
/** Between SIGTERM and SIGKILL. */
const KILL_DELAY_MS = 3000
/** How long output that is still in a pipe is read after the program has ended. */
const OUTPUT_DRAIN_MS = 1000

type Process = ChildProcessByStdio<Writable | null, Readable, Readable>
type Pipe = Readable | Writable | null | undefined

/** A way to the network for one program. */
export interface ProgramProxy {
  /** The socket file it listens on. */
  readonly socket: string
  /** Ends connections that are no longer permitted. */
  recheck(): Promise<void>
  close(): Promise<void>
}
export interface RunningProgramOptions {
  readonly spawn: typeof SpawnProcess
  readonly launcher: Launcher
  /** Absolute path of the program. */
  readonly path: string
  readonly launch: Launch
  /** Folder for temporary files. */
  readonly temporary: string
  readonly request: SpawnRequest
  /** Absent: the program has no network. */
  readonly network: { readonly proxy: ProgramProxy; readonly variables: Readonly<Record<string, string>> } | undefined
}

/** A program from its start until everything that it started has ended. */
export class RunningProgram implements Child {
  readonly pid: number
  readonly started: Promise<void>
  readonly ended: Promise<Exit>
  readonly #request: SpawnRequest
  readonly #process: Process
  readonly #tail: Tail
  /** In the environment of the program, to find a process that left its group where no namespace holds it. */
  readonly #mark = crypto.randomUUID()
  readonly #hasPidNamespace: boolean
  readonly #proxy: ProgramProxy | undefined
  #reason: Exit['reason'] = 'exit'
  #exited = false
  /** The first process of the PID namespace, which leads a process group of its own. */
  #initPid = 0
  /** Settles when no process of the PID namespace is left. */
  #namespaceEnded: Promise<void> | undefined
  #killTimer: NodeJS.Timeout | undefined
  #silenceTimer: NodeJS.Timeout | undefined

  constructor(options: RunningProgramOptions) {
    const { launcher, launch, request, network } = options
    this.#request = request
    this.#proxy = network?.proxy
    this.#hasPidNamespace = launcher.hasPidNamespace
    this.#tail = new Tail(request.outputBytes ?? OUTPUT_BYTES)
    this.#process = startProcess(options, this.#mark)
    this.pid = this.#process.pid ?? 0
    if (launcher.pipes) this.#watchNamespace(launch.operator ? undefined : launcher.filter)
    // `write` reports a failed write to its caller.
    this.#process.stdin?.on('error', () => undefined)
    this.started = this.#watchStart()
    this.#readOutput()
    this.ended = this.#watchEnd(launch.timeoutMs)
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

  #watchStart(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#process.once('spawn', resolve)
      this.#process.once('error', (error) =>
        reject(
          new Refusal('invalid_request', `The program "${this.#request.command}" could not be started`, {
            cause: error,
          }),
        ),
      )
    })
  }

  #readOutput(): void {
    const { onOutput, silenceMs } = this.#request
    for (const from of ['stdout', 'stderr'] as const) {
      this.#process[from].on('data', (chunk: Buffer) => {
        this.#tail.add(chunk)
        onOutput?.(chunk, from)
        this.#restartSilenceTimer(silenceMs)
      })
    }
    this.#restartSilenceTimer(silenceMs)
  }

  #restartSilenceTimer(silenceMs: number | undefined): void {
    if (silenceMs === undefined || this.#exited) return
    if (this.#silenceTimer) this.#silenceTimer.refresh()
    else this.#silenceTimer = setTimeout(() => this.#end('silence'), silenceMs).unref()
  }

  /** Ends the program at its time limit or when the caller aborts. */
  #watchEnd(timeoutMs: number): Promise<Exit> {
    const startedAt = performance.now()
    const { signal: abort } = this.#request
    const timer = setTimeout(() => {
      enforced('subprocess_sandbox')
      this.#end('timeout')
    }, timeoutMs)
    timer.unref()
    const onAbort = (): void => this.#end('killed')
    abort?.addEventListener('abort', onAbort, { once: true })
    return new Promise((resolve) => {
      const finish = (code: number | null, signal: string | null): void => {
        for (const each of [timer, this.#silenceTimer, this.#killTimer]) clearTimeout(each)
        abort?.removeEventListener('abort', onAbort)
        resolve({ code, signal, reason: this.#reason, durationMs: performance.now() - startedAt })
      }
      this.#process.once('error', () => finish(null, null))
      this.#process.once('exit', (code, signal) => {
        this.#exited = true
        void this.#killRest().then(() => finish(code, signal))
      })
    })
  }

  #end(reason: Exit['reason']): void {
    if (this.#exited || this.#killTimer) return
    this.#reason = reason
    this.#signal('SIGTERM', this.#initPid || this.pid)
    // Not unref'd: a daemon that is stopping waits until no program of it is left.
    this.#killTimer = setTimeout(() => this.#signal('SIGKILL'), KILL_DELAY_MS)
  }
  /** Signals a whole process group. */
  #signal(signal: NodeJS.Signals, group = this.pid): void {
    if (this.pid === 0) return
    try {
      if (process.platform === 'win32') this.#process.kill(signal)
      else process.kill(-group, signal)
    } catch (error) {
      // No process of the group is left.
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
    }
  }

  /**
   * bubblewrap writes the first process of the PID namespace to the first pipe, holds the second one open as long as
   * a process is in the namespace, and reads its filter from the third.
   */
  #watchNamespace(filter: Uint8Array | undefined): void {
    const [, , , info, end, wants] = this.#process.stdio as readonly Pipe[]
    let facts = ''
    ;(info as Readable).on('data', (bytes: Buffer) => {
      facts += bytes.toString()
      this.#initPid = Number(/"child-pid"\s*:\s*(\d+)/.exec(facts)?.[1] ?? 0)
    })
    // The pipes end with the process, whose `error` and `exit` events are handled.
    for (const pipe of [info, end, wants]) pipe?.on('error', () => undefined)
    this.#namespaceEnded = new Promise((resolve) => {
      end?.once('close', () => resolve())
    })
    ;(end as Readable).resume()
    ;(wants as Writable).end(filter)
  }

  /** Kills everything the program started, then reads what is left in the pipes. */
  async #killRest(): Promise<void> {
    this.#signal('SIGKILL')
    // A launcher that ends before it has named the first process of its namespace may leave that one behind.
    if (!this.#hasPidNamespace || this.#initPid === 0) await killOrphanProcesses(this.#mark)
    const { stdout, stderr } = this.#process
    const closed = Promise.all([this.#namespaceEnded, whenClosed(stdout), whenClosed(stderr)])
    let timer: NodeJS.Timeout | undefined
    const isClosed = await Promise.race([
      closed.then(() => true),
      new Promise<false>((resolve) => {
        timer = setTimeout(() => resolve(false), OUTPUT_DRAIN_MS)
      }),
    ])
    clearTimeout(timer)
    // Something still holds the pipes or the namespace.
    if (!isClosed) await killOrphanProcesses(this.#mark)
    for (const stream of this.#process.stdio as readonly Pipe[]) stream?.destroy()
  }
}

function startProcess(
  { spawn, launcher, path, launch, temporary, request, network }: RunningProgramOptions,
  mark: string,
): Process {
  const [file = path, ...args] = launcher.command([path, ...(request.args ?? [])], launch)
  const env = createEnvironment({
    home: request.home ?? request.cwd,
    temporary,
    path: request.path ?? [],
    extra: request.env ?? {},
    approved: request.approvedEnv ?? [],
  })
  return spawn(file, args, {
    cwd: request.cwd,
    env: { ...env, ...network?.variables, [MARK]: mark },
    shell: false,
    detached: process.platform !== 'win32',
    windowsHide: true,
    stdio: [
      request.input === 'open' ? 'pipe' : 'ignore',
      'pipe',
      'pipe',
      ...(launcher.pipes ? (['pipe', 'pipe', 'pipe'] as const) : []),
    ],
  }) as Process
}

function whenClosed(stream: Readable): Promise<void> | undefined {
  if (stream.closed) return undefined
  return new Promise((resolve) => {
    stream.once('close', resolve)
  })
}
