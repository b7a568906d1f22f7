import { createRequire } from 'node:module'
import type ChildProcess from 'node:child_process'
import { safePath } from './environment.ts'
import { findProcess } from './process-file.ts'

/** A child process that runs code of this installation. It ends with the daemon. */
export interface OwnProcess {
  /** Does nothing after the process has ended. */
  send(message: object): void
  kill(): void
}
export interface ForkOptions {
  /**
   * For code that is not trusted: the process may read these files and folders, and may neither write nor start other
   * programs, threads or native code. The network is open to it.
   */
  readonly readable?: readonly string[]
  onMessage(message: unknown): void
  /** Called once, also after `kill`. */
  onExit(): void
}

/**
 * Runs `processes/<name>.ts` of a plugin in a child process, without the environment of the daemon. Throws if the file
 * is missing.
 */
export function forkProcess(plugin: string, name: string, { onMessage, onExit, readable }: ForkOptions): OwnProcess {
  // Loaded lazily, and synchronously because the caller sends its first message at once.
  const { fork } = createRequire(import.meta.url)('node:child_process') as typeof ChildProcess
  const file = processFile(plugin, name)
  const child = fork(file, [], {
    env: { PATH: safePath.join(':') },
    execArgv: [...nodeOptions(file, readable)],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  // The process must not keep the daemon alive.
  child.unref()
  child.channel?.unref()
  let hasEnded = false
  const end = (): void => {
    if (hasEnded) return
    hasEnded = true
    onExit()
  }
  child.on('message', onMessage)
  child.once('error', end)
  child.once('exit', end)
  return {
    send: (message) => {
      if (child.connected) child.send(message, () => undefined /* it has ended, which `onExit` reports */)
    },
    kill: () => {
      child.kill('SIGKILL')
    },
  }
}

export interface ReadOptions {
  /** As in `ForkOptions`. */
  readonly readable: readonly string[]
  /** The process finds it in `process.argv[2]`. */
  readonly argument: string
  /** What the process writes to its file descriptor 3. Unlike a message, it comes in pieces, which can be limited. */
  onData(chunk: Buffer): void
  /** Called once, after the last data, also after `kill`. */
  onExit(): void
}

/** As `forkProcess`, for a process that gets one argument and whose answer may be of any size. */
export function readProcess(
  plugin: string,
  name: string,
  { argument, readable, onData, onExit }: ReadOptions,
): Pick<OwnProcess, 'kill'> {
  const { spawn } = createRequire(import.meta.url)('node:child_process') as typeof ChildProcess
  const file = processFile(plugin, name)
  const child = spawn(process.execPath, [...nodeOptions(file, readable), file, argument], {
    env: { PATH: safePath.join(':') },
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  child.unref()
  child.stdio[3]?.on('data', onData)
  child.once('error', () => undefined /* `close` follows */)
  child.once('close', onExit)
  return {
    kill: () => {
      child.kill('SIGKILL')
    },
  }
}

function nodeOptions(file: string, readable: readonly string[] | undefined): readonly string[] {
  return [
    '--max-semi-space-size=1',
    '--disable-warning=ExperimentalWarning',
    ...(file.endsWith('.ts') ? ['--conditions=svc-source'] : []),
    ...(readable ? ['--permission', ...outermost([file, ...readable]).map((path) => `--allow-fs-read=${path}`)] : []),
  ]
}

/** Node forgets a folder that is permitted when a path below it is permitted too. */
function outermost(paths: readonly string[]): readonly string[] {
  return paths.filter((path) => !paths.some((other) => path.startsWith(`${other}/`)))
}

/**
 * The file of `processes/<name>.ts` of a plugin, which the build puts into `dist/processes`. Throws if it is missing.
 */
export function processFile(plugin: string, name: string): string {
  return findProcess(`../../plugins/${plugin}/processes/${name}.ts`, `${plugin}-${name}.js`)
}
