import type ChildProcess from 'node:child_process'
import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { END_FD, FILTER_FD } from './launcher.ts'
import type { Launcher } from './launcher.ts'
import { safePath } from './environment.ts'
import type { OwnProcess } from './fork.ts'
import { works } from './spawn.ts'

export interface PluginProcessOptions {
  /** Files and folders it may read: its own code and that of the installation. */
  readonly readable: readonly string[]
  /** The folder it starts in, which it may read; it is made. */
  readonly folder: string
  readonly memoryMb: number
  onMessage(message: unknown): void
  /** Called once, also after `kill`, with the last lines of what it wrote. */
  onExit(reason: string): void
}

let launcher: Promise<Launcher> | undefined
/** It runs as long as its plugin. */
const UNLIMITED_MS = 2 ** 31 - 1
const MAX_OUTPUT = 2_000

/**
 * A process for the code of one plugin, which is not trusted. Node denies it files beside its own, other programs,
 * threads and native code; where the system can confine programs, the kernel denies it the same and the network.
 */
export async function startPluginProcess(options: PluginProcessOptions): Promise<OwnProcess> {
  const { createLauncher } = await import('./launcher.ts')
  const { command, isolation, pipes, filter } = await (launcher ??= createLauncher(works))
  mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  const entry = entryFile()
  const node = nodeCommand(entry, options)
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
  const { fork } = createRequire(import.meta.url)('node:child_process') as typeof ChildProcess
  const child = fork(entry, [], {
    cwd: options.folder,
    env: { PATH: safePath.join(':') },
    execPath: file,
    execArgv: args,
    serialization: 'json',
    stdio: ['ignore', 'ignore', 'pipe', ...(pipes ? (['pipe', 'pipe', 'pipe'] as const) : []), 'ipc'],
  })
  return own(child, options, filter)
}

function own(
  child: ChildProcess.ChildProcess,
  { onMessage, onExit }: PluginProcessOptions,
  filter: Uint8Array | undefined,
): OwnProcess {
  child.unref()
  child.channel?.unref()
  let output = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    output = (output + bytes.toString()).slice(-MAX_OUTPUT)
  })
  const pipes = child.stdio as readonly (Readable | Writable | null | undefined)[]
  for (const pipe of pipes) {
    pipe?.on('error', () => undefined /* it ends with the process, which `onExit` reports */)
    if (pipe && 'unref' in pipe && typeof pipe.unref === 'function') pipe.unref()
  }
  for (const at of [END_FD - 1, END_FD]) if (pipes.length > FILTER_FD + 1) (pipes[at] as Readable).resume()
  if (pipes.length > FILTER_FD + 1) (pipes[FILTER_FD] as Writable).end(filter)
  let hasEnded = false
  const end = (reason: string): void => {
    if (hasEnded) return
    hasEnded = true
    onExit(reason)
  }
  child.on('message', onMessage)
  child.once('error', (error) => end(error.message))
  child.once('exit', (code, signal) => end(reasonOf(code, signal, output)))
  return {
    send: (message) => {
      if (child.connected) child.send(message, () => undefined /* it has ended, which `onExit` reports */)
    },
    kill: () => {
      child.kill('SIGKILL')
    },
  }
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

/** The build puts it beside the processes of plugins. */
function entryFile(): string {
  const file = ['../host/isolation/process.ts', './processes/core-plugin.js', '../processes/core-plugin.js']
    .map((place) => new URL(place, import.meta.url))
    .find((url) => existsSync(url))
  if (!file) throw new Error('this installation is incomplete: processes/core-plugin.js is missing')
  return realpathSync(fileURLToPath(file))
}
