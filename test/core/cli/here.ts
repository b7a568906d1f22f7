import { vi } from 'vitest'
import { runLine } from '../../../core/cli/run.ts'

export interface Answer {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A command line run in this process: for commands that end before they start a daemon, many times faster. */
export async function runHere(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Answer> {
  let [stdout, stderr] = ['', '']
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += String(text)
    return true
  })
  const err = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += String(text)
    return true
  })
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  try {
    const code = await runLine(args)
    return { code, stdout, stderr }
  } finally {
    out.mockRestore()
    err.mockRestore()
    vi.unstubAllEnvs()
  }
}
