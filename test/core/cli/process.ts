import { spawn } from 'node:child_process'
import { builtCommand, compiledCode } from '../../support/built-package.ts'

export const { file: main, path } = await builtCommand()

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}
export interface Running {
  readonly pid: number
  readonly ended: Promise<Ended>
  readonly stdin: NodeJS.WritableStream
  kill(signal: NodeJS.Signals): void
  /** Closes the pipes it prints to. */
  hangUp(): void
  /** Settles with the match once the output (of both kinds) has it; rejects when the command ends without. */
  prints(pattern: RegExp): Promise<RegExpExecArray>
}

/** The real command, built from the sources as they are now, in a folder without a configuration file. */
export function startCli(
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string } = {},
): Running {
  const child = spawn(process.execPath, [main, ...args], {
    cwd: options.cwd ?? '/',
    stdio: 'pipe',
    env: { PATH: path, HOME: '/nonexistent', ...compiledCode, ...options.env },
  })
  let [stdout, stderr] = ['', '']
  const waiting = new Set<() => void>()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    for (const look of waiting) look()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    for (const look of waiting) look()
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  return {
    pid: child.pid ?? -1,
    ended,
    stdin: child.stdin,
    kill: (signal) => {
      child.kill(signal)
    },
    hangUp: () => {
      child.stdout.destroy()
      child.stderr.destroy()
    },
    prints: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(`${stdout}\n${stderr}`)
          if (!match) return
          waiting.delete(look)
          resolve(match)
        }
        waiting.add(look)
        look()
        void ended.then((end) => reject(new Error(`ended without ${String(pattern)}: ${JSON.stringify(end)}`)))
      }),
  }
}
export async function runCli(
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly input?: string } = {},
): Promise<Ended> {
  const running = startCli(args, options)
  running.stdin.end(options.input ?? '')
  return await running.ended
}
/** A daemon on a free port, ready. */
export async function startDaemon(
  home: string,
  options: { readonly args?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Running & { readonly url: string } & AsyncDisposable> {
  const running = startCli(['start', '--home', home, '--port', '0', ...(options.args ?? [])], {
    env: options.env ?? {},
  })
  const [, url = ''] = await running.prints(/svc listening on (http\S+)/)
  await running.prints(/Open the chat page/)
  return {
    ...running,
    url,
    async [Symbol.asyncDispose]() {
      running.kill('SIGKILL')
      await running.ended
    },
  }
}
