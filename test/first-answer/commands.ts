import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, dirname } from 'node:path'

export const env = { ...process.env, PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter) }

export interface Command {
  readonly name: string
  readonly args: readonly string[]
  readonly cwd: string
  /** Sent on its standard input. */
  readonly input?: string
}

/** Rejects when the command fails. Returns its standard output. */
export async function run({ name, args, cwd, input = '' }: Command): Promise<string> {
  const child = spawn(name, args, { cwd, env, stdio: ['pipe', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (bytes) => (output += String(bytes)))
  // One that ends without reading closes the pipe.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${code}: ${output}`)
  return output
}

export interface Daemon {
  readonly url: string
  /** Settles when the daemon prints this after the call. */
  prints(pattern: RegExp): Promise<void>
}

/** Starts a daemon and runs the work once it listens; ends it afterwards. */
export async function withDaemon(
  { name, args, cwd }: Command,
  work: (daemon: Daemon) => Promise<unknown>,
): Promise<void> {
  const child = spawn(name, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const ended = once(child, 'close')
  const waiting = new Set<(text: string) => void>()
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes) => {
      output += String(bytes)
      for (const look of waiting) look(output)
    })
  const prints = (pattern: RegExp, from = output.length): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (text: string): void => {
        const found = pattern.exec(text.slice(from))
        if (!found) return
        waiting.delete(look)
        resolve(found[0])
      }
      waiting.add(look)
      look(output)
      const fail = (): void => reject(new Error(`the daemon ended without ${String(pattern)}: ${output}`))
      ended.then(fail, reject)
    })
  try {
    const url = await prints(/http:\/\/127\.0\.0\.1:\d+/, 0)
    await work({ url, prints: (pattern) => prints(pattern).then(() => undefined) })
  } finally {
    // npm is the parent of the daemon.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM')
    await ended
  }
}

export type Steps = Readonly<Record<string, () => Promise<unknown>>>

/** Runs the steps one after the other and prints the seconds of each, and of all. */
export async function measure(title: string, steps: Steps): Promise<void> {
  const begun = performance.now()
  for (const [name, step] of Object.entries(steps)) {
    const started = performance.now()
    await step()
    console.log(`${title}: ${name}: ${seconds(started)} s`)
  }
  console.log(`${title}: all: ${seconds(begun)} s`)
}
const seconds = (since: number): string => ((performance.now() - since) / 1000).toFixed(1)

export function expectText(text: string, part: string): void {
  if (!text.includes(part)) throw new Error(`expected "${part}", got: ${text}`)
}
