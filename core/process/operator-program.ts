/** How a program of the system ended. */
export interface ProgramResult {
  readonly code: number | 'not-found' | undefined
  readonly stdout: string
  readonly stderr: string
}

/** Runs a system program for a command of the operator, never for a plugin. */
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

/** Runs a program that has the terminal of this process until it ends; its exit code. */
export async function runInTerminal(program: string, args: readonly string[]): Promise<number | 'not-found' | null> {
  const { spawn } = await import('node:child_process')
  // Ctrl-C is for the program.
  const ignore = (): void => undefined
  process.on('SIGINT', ignore)
  try {
    return await new Promise((resolve, reject) => {
      const child = spawn(program, args, { stdio: 'inherit' })
      child.once('error', (error) =>
        'code' in error && error.code === 'ENOENT' ? resolve('not-found') : reject(error),
      )
      child.once('exit', (code) => resolve(code))
    })
  } finally {
    process.off('SIGINT', ignore)
  }
}

/** A program that goes on when this process ends. */
export interface DetachedProgram {
  readonly pid: number
  /** The first line it prints; `undefined` when it ends without one. */
  readonly firstLine: Promise<string | undefined>
  /** Its exit code, `null` after a signal. */
  readonly ended: Promise<number | null>
  /** Lets this process end while the program runs. */
  release(): void
}

/** Starts a program that no closed terminal ends. `log`: the open file that gets what it prints as errors. */
export async function startDetached(program: string, args: readonly string[], log: number): Promise<DetachedProgram> {
  const [{ spawn }, { createInterface }] = await Promise.all([import('node:child_process'), import('node:readline')])
  const child = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', log] })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code))
  })
  const { stdout } = child
  if (stdout === null) throw new Error('a pipe was asked for')
  const lines = createInterface({ input: stdout })
  const firstLine = new Promise<string | undefined>((resolve) => {
    lines.once('line', resolve)
    lines.once('close', () => resolve(undefined))
  })
  return {
    pid: child.pid ?? -1,
    firstLine,
    ended,
    release() {
      lines.close()
      stdout.destroy()
      child.unref()
    },
  }
}
