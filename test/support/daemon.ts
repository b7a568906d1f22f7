import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { builtCommand, compiledCode } from './built-package.ts'
import type { BuiltCommand } from './built-package.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface DaemonProcess extends AsyncDisposable {
  readonly url: string
  readonly pid: number
  /** Milliseconds from spawn to the line that says it listens. */
  readonly bootMs: number
  /** Everything it printed so far. */
  output(): string
  /** SIGKILL to the whole process group; settles when it is gone. */
  kill(): Promise<void>
  /** SIGTERM; the exit code. */
  stop(): Promise<number | null>
}

/** The command of `dist/`, or that of the sources as they are now. */
export async function daemonCommand(built: boolean): Promise<BuiltCommand> {
  return built ? { file: 'dist/svc.js', path: process.env['PATH'] ?? '' } : await builtCommand()
}

/**
 * The real daemon in a process group of its own: that of `dist/`, or one built from the sources as they are now. Port
 * from the system unless given.
 */
export async function startDaemon(options: {
  readonly home: string
  readonly built?: boolean
  /** That of another build. */ readonly file?: string
  readonly env?: NodeJS.ProcessEnv
  readonly args?: readonly string[]
  /** A program that runs the daemon, such as `prlimit` with its arguments. */ readonly under?: readonly string[]
  /** Kills it, whether or not it listens by then. */ readonly signal?: AbortSignal
}): Promise<DaemonProcess> {
  const command = await daemonCommand(options.built ?? false)
  const { path, file } = { ...command, ...(options.file !== undefined && { file: options.file }) }
  const begun = performance.now()
  const [program = '', ...before] = [...(options.under ?? []), process.execPath]
  const child = spawn(
    program,
    [...before, file, 'start', '--home', options.home, '--port', '0', ...(options.args ?? [])],
    {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: path, HOME: options.home, SVC_HOME: options.home, ...compiledCode, ...options.env },
    },
  )
  const pid = child.pid
  if (pid === undefined) throw new Error('the daemon did not start')
  options.signal?.addEventListener(
    'abort',
    () => {
      if (child.exitCode === null && child.signalCode === null) process.kill(-pid, 'SIGKILL')
    },
    { once: true },
  )
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        output += `${line}\n`
        const ready = /svc listening on (http\S+)/.exec(line)
        if (ready?.[1]) resolve(ready[1])
      })
    }
    // Not on 'exit', before which its last words need not have been read.
    child.once('close', (code, signal) =>
      reject(new Error(`the daemon ended before it listened (${code ?? signal}):\n${output}`)),
    )
  })
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-pid, 'SIGKILL')
    await gone()
  }
  const gone = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  return {
    url,
    pid,
    bootMs: performance.now() - begun,
    output: () => output,
    kill,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) process.kill(options.under ? -pid : pid, 'SIGTERM')
      await gone()
      return child.exitCode
    },
    [Symbol.asyncDispose]: kill,
  }
}
