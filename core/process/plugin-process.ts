import type ChildProcess from 'node:child_process'
import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Duplex, Readable, Writable } from 'node:stream'
import { END_FD, FILTER_FD, INFO_FD } from './launcher.ts'
import type { Launcher } from './launcher.ts'
import { safePath } from './environment.ts'
import type { OwnProcess } from './fork.ts'
import { MessagePipe } from './message-pipe.ts'
import { killOrphanProcesses, MARK } from './orphan-processes.ts'
import { findProcess } from './process-file.ts'
import { works } from './spawn.ts'

export interface PluginProcessOptions {
  /** Files and folders it may read: its own code and that of the installation. */
  readonly readable: readonly string[]
  /** The folder it starts in, which it may read; it is made. */
  readonly folder: string
  readonly memoryMb: number
  /** Bytes of one message of the process; a longer one ends it. */
  readonly maxMessageBytes: number
  onMessage(message: unknown): void
  /** Called once, also after `kill`, with the last lines of what it wrote. */
  onExit(reason: string): void
}

/** A process of a plugin, with everything that was started for it. */
export interface PluginProcess extends OwnProcess {
  /** Settles when nothing of it is left. Never rejects. */
  readonly ended: Promise<void>
}

let launcher: Promise<Launcher> | undefined
/** It runs as long as its plugin. */
const UNLIMITED_MS = 2 ** 31 - 1
const MAX_OUTPUT = 2_000
const NAMESPACE_END_MS = 1000
const MAX_UNREAD_BYTES = 67_108_864

/**
 * A process for the code of one plugin, which is not trusted. Node denies it files beside its own, other programs,
 * threads and native code; where the system can confine programs, the kernel denies it the same and the network.
 */
export async function startPluginProcess(options: PluginProcessOptions): Promise<PluginProcess> {
  const { createLauncher } = await import('./launcher.ts')
  const { command, isolation, pipes, filter } = await (launcher ??= createLauncher(works))
  const mark = crypto.randomUUID()
  mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  const entry = realpathSync(findProcess('../host/isolation/process.ts', 'core-plugin.js'))
  const node = [...nodeCommand(entry, options), entry, String(pipes ? FILTER_FD + 1 : INFO_FD)]
  const [file = process.execPath, ...args] =
    isolation.level === 'none'
      ? node
      : command(node, {
          timeoutMs: UNLIMITED_MS,
          folder: realpathSync(options.folder),
          operator: false,
          read: [process.execPath, ...options.readable]
            .filter((path) => existsSync(path))
            .map((path) => realpathSync(path)),
          write: [],
          hidden: [],
          code: [],
          proxy: undefined,
        })
  const { spawn } = createRequire(import.meta.url)('node:child_process') as typeof ChildProcess
  const child = spawn(file, args, {
    cwd: options.folder,
    env: { PATH: safePath.join(':'), [MARK]: mark },
    // Not the channel of Node, which keeps whatever the other side sends.
    stdio: ['ignore', 'ignore', 'pipe', ...(pipes ? (['pipe', 'pipe', 'pipe'] as const) : []), 'pipe'],
  })
  const started = new StartedProcess(child, mark, isolation.level !== 'none')
  if (pipes) started.watchNamespace(filter)
  started.report(options)
  return started
}

class StartedProcess implements PluginProcess {
  readonly ended: Promise<void>
  readonly #child: ChildProcess.ChildProcess
  #messages: MessagePipe | undefined
  #problem: string | undefined
  /** Whether it named the first process of its namespace, which ends with it from then on. */
  #isNamed = false

  constructor(child: ChildProcess.ChildProcess, mark: string, hasLauncher: boolean) {
    this.#child = child
    child.unref()
    for (const pipe of this.#pipes) {
      pipe?.on('error', () => undefined /* it ends with the process, which `onExit` reports */)
      if (pipe && 'unref' in pipe && typeof pipe.unref === 'function') pipe.unref()
    }
    this.ended = new Promise<void>((resolve) => {
      child.once('error', () => resolve())
      child.once('exit', () => resolve())
    }).then(async () => {
      // A launcher that ends before it has named the first process may leave that one behind.
      if (hasLauncher && !(this.#isNamed && (await this.#hasNamespaceEnded()))) await killOrphanProcesses(mark)
      // Its handle is closed at the end of the turn, after what is due immediately: the next one finds it closed.
      await nextImmediate()
      await nextImmediate()
    })
  }

  /** The system ends the processes of the namespace a moment after the launcher. */
  async #hasNamespaceEnded(): Promise<boolean> {
    const end = this.#pipes[END_FD]
    if (!end || end.closed) return true
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), NAMESPACE_END_MS)
    })
    const closed = new Promise<true>((resolve) => {
      end.once('close', () => resolve(true))
    })
    const hasEnded = await Promise.race([closed, late])
    clearTimeout(timer)
    return hasEnded
  }

  get #pipes(): readonly (Readable | Writable | null | undefined)[] {
    return this.#child.stdio
  }

  watchNamespace(filter: Uint8Array | undefined): void {
    let facts = ''
    ;(this.#pipes[INFO_FD] as Readable).on('data', (bytes: Buffer) => {
      facts += bytes.toString()
      this.#isNamed = /"child-pid"\s*:\s*\d+/.test(facts)
    })
    ;(this.#pipes[END_FD] as Readable).resume()
    ;(this.#pipes[FILTER_FD] as Writable).end(filter)
  }

  report({ maxMessageBytes, onMessage, onExit }: PluginProcessOptions): void {
    this.#messages = new MessagePipe(this.#pipes.at(-1) as Duplex, {
      maxBytes: maxMessageBytes,
      onMessage,
      onProblem: (reason) => {
        this.#problem = reason
        this.kill()
      },
    })
    let output = ''
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      output = (output + bytes.toString()).slice(-MAX_OUTPUT)
    })
    let hasEnded = false
    const end = (reason: string): void => {
      if (hasEnded) return
      hasEnded = true
      onExit(reason)
    }
    this.#child.once('error', (error) => end(error.message))
    this.#child.once('exit', (code, signal) => end(this.#problem ?? reasonOf(code, signal, output)))
  }

  /** Ends a process that does not read what it is sent. */
  send(message: object): void {
    const { unread = 0 } = this.#messages ?? {}
    if (unread > MAX_UNREAD_BYTES) {
      this.#problem = 'it did not read what the daemon sent'
      this.kill()
    } else this.#messages?.send(message)
  }
  kill(): void {
    // The daemon does not end before what it started has.
    this.#child.ref()
    this.#child.kill('SIGKILL')
  }
}

function nextImmediate(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

function reasonOf(code: number | null, signal: string | null, output: string): string {
  if (/heap out of memory|heap limit/i.test(output)) return 'it used more memory than it may'
  const last = output
    .trim()
    .split('\n')
    .findLast((line) => /Error|error/.test(line))
  return `it ended with ${signal ?? `code ${code}`}${last === undefined ? '' : `: ${last.trim()}`}`
}

function nodeCommand(entry: string, { readable, memoryMb }: PluginProcessOptions): readonly string[] {
  const readableByNode = outermost([entry, ...readable])
  return [
    realpathSync(process.execPath),
    `--max-old-space-size=${memoryMb}`,
    '--disable-warning=ExperimentalWarning',
    '--disable-warning=SecurityWarning',
    ...(entry.endsWith('.ts') ? ['--conditions=svc-source'] : []),
    '--permission',
    ...readableByNode.map((path) => `--allow-fs-read=${path}`),
  ]
}
/** Node forgets a folder that is permitted when a path below it is permitted too. */
function outermost(paths: readonly string[]): readonly string[] {
  return paths.filter((path) => !paths.some((other) => path.startsWith(`${other}/`)))
}
