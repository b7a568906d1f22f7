import { spawn } from 'node:child_process'
import type { ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'

export interface Child {
  readonly pid: number
  /** The next line it prints; throws when it ends without one. */
  line(): Promise<string>
  readonly lines: readonly string[]
  readonly stdin: Writable
  /** SIGKILL, and every line that came before. */
  kill(): Promise<readonly string[]>
  exit(): Promise<number | null>
}

/** Starts a program of `children/` with the Node of this test. `under` are words before it, such as `prlimit`. */
export function start(name: string, args: readonly string[], under: readonly string[] = []): Child {
  const words = [
    ...under,
    process.execPath,
    '--conditions=svc-source',
    '--disable-warning=ExperimentalWarning',
    fileURLToPath(new URL(`children/${name}.ts`, import.meta.url)),
    ...args,
  ]
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(words[0] ?? '', words.slice(1), {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  let taken = 0
  let wake = Promise.withResolvers<void>()
  let ended = false
  const reader = createInterface({ input: child.stdout })
  reader.on('line', (text) => {
    lines.push(text)
    wake.resolve()
    wake = Promise.withResolvers()
  })
  reader.on('close', () => {
    ended = true
    wake.resolve()
  })
  const gone = once(child, 'close')
  return {
    pid: child.pid ?? 0,
    lines,
    stdin: child.stdin,
    async line() {
      while (lines.length <= taken) {
        if (ended) throw new Error(`${name} ended after: ${lines.join(' | ')}`)
        await wake.promise
      }
      return lines[taken++] ?? ''
    },
    async kill() {
      child.kill('SIGKILL')
      await gone
      return lines
    },
    async exit() {
      await gone
      return child.exitCode
    },
  }
}
