import { execFile, spawn } from 'node:child_process'
import { readFile, readlink } from 'node:fs/promises'
import { promisify } from 'node:util'
import xterm from '@xterm/headless'
import { PATIENCE_MS } from './patience.ts'
import { builtCommand, compiledCode } from './built-package.ts'

export interface TerminalEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}
/** A program in a terminal: what a person types and sees. */
export interface TestTerminal extends AsyncDisposable {
  readonly pid: number
  readonly ended: Promise<TerminalEnd>
  /** Every byte the program wrote. */
  readonly raw: string
  type(text: string): void
  /** What is to be seen, what was scrolled away included, without empty lines at the end. */
  screen(): string
  /** Settles with the match once it is to be seen; rejects when the program ends without. */
  shows(pattern: RegExp): Promise<RegExpExecArray>
  /** Settles once it is not to be seen any more. */
  hides(pattern: RegExp): Promise<void>
  kill(signal: NodeJS.Signals): void
  /** The window gets another size, and the program is told. */
  resize(cols: number, rows: number): Promise<void>
}

const { path } = await builtCommand()

/** Runs a line of shell in a pseudo-terminal, which `script` makes, and reads it as a terminal does. */
export function startTerminal(
  line: string,
  options: {
    readonly env?: NodeJS.ProcessEnv
    readonly cwd?: string
    readonly cols?: number
    readonly rows?: number
  } = {},
): TestTerminal {
  const { cols = 80, rows = 30 } = options
  const child = spawn('script', ['-qefc', `stty cols ${cols} rows ${rows}; ${line}`, '/dev/null'], {
    cwd: options.cwd ?? '/',
    stdio: 'pipe',
    env: {
      PATH: path,
      HOME: '/nonexistent',
      TERM: 'xterm-256color',
      SHELL: '/bin/sh',
      ...compiledCode,
      ...options.env,
    },
  })
  const terminal = new xterm.Terminal({ cols, rows, scrollback: 5000, allowProposedApi: true })
  let raw = ''
  const waiting = new Set<() => void>()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    raw += text
    terminal.write(text, () => {
      for (const look of waiting) look()
    })
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    raw += text
  })
  const ended = new Promise<TerminalEnd>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => terminal.write('', () => resolve({ code, signal })))
  })
  const screen = (): string => {
    const { active } = terminal.buffer
    const lines = Array.from({ length: active.length }, (_, at) => active.getLine(at)?.translateToString(true) ?? '')
    return lines.join('\n').trimEnd()
  }
  const until = <T>(read: () => T | undefined, what: string): Promise<T> =>
    new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        waiting.delete(look)
        clearTimeout(timer)
        reject(new Error(`${why} ${what}:\n${screen()}`))
      }
      // What is on the screen instead says more than a test that ran out of time.
      const timer = setTimeout(() => fail(`${PATIENCE_MS / 1000} s without`), PATIENCE_MS)
      const look = (): void => {
        const found = read()
        if (found === undefined) return
        waiting.delete(look)
        clearTimeout(timer)
        resolve(found)
      }
      waiting.add(look)
      look()
      void ended.then(() => fail('ended without'))
    })
  return {
    pid: child.pid ?? -1,
    ended,
    get raw() {
      return raw
    },
    type: (text) => {
      child.stdin.write(text)
    },
    screen,
    shows: (pattern) => until(() => pattern.exec(screen()) ?? undefined, String(pattern)),
    hides: (pattern) =>
      until(() => (pattern.test(screen()) ? undefined : true), `hiding ${String(pattern)}`).then(() => undefined),
    kill: (signal) => {
      child.kill(signal)
    },
    async resize(width, height) {
      terminal.resize(width, height)
      const [program = ''] = (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).split(' ')
      const device = await readlink(`/proc/${program}/fd/0`)
      await promisify(execFile)('stty', ['-F', device, 'cols', String(width), 'rows', String(height)])
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
