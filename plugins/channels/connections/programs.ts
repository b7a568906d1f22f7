import type { StartProgram } from 'svc/channels'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Child, Spawn } from 'svc/sdk'
import { MissingProgram } from './failure.ts'

/** The longest time that a timer takes, 24 days: then the connection is opened anew. */
const MAX_MS = 2_147_483_647

/** Starts the programs of one connection. The operator chose them: they use this machine as the daemon does. */
export function programStarter(spawn: Pick<Spawn, 'find' | 'start'> | undefined, signal: AbortSignal): StartProgram {
  return async ({ program, args, folder, input, timeoutMs = MAX_MS, onOutput }) => {
    if (!spawn)
      throw new Refusal(
        'forbidden',
        `"${program}" is not started: only accounts of the configuration file run programs, and channels that are built in`,
      )
    await requireProgram(spawn, program, folder)
    const child = await spawn.start({
      command: program,
      args,
      cwd: folder,
      home: folder,
      trust: 'operator',
      background: true,
      timeoutMs,
      onOutput,
      signal,
      ...omitUndefined({ input: input === undefined ? undefined : ('open' as const) }),
    })
    if (input !== undefined) await writeAll(child, input)
    return child
  }
}

async function writeAll(child: Pick<Child, 'write' | 'closeInput'>, input: string): Promise<void> {
  try {
    await child.write(input)
  } catch (error) {
    // It ended before it read anything: how it ended says why.
    if (!(error instanceof Refusal) || error.code !== 'conflict') throw error
  }
  child.closeInput()
}

async function requireProgram(spawn: Pick<Spawn, 'find'>, program: string, folder: string): Promise<void> {
  try {
    await spawn.find(program, folder)
  } catch (error) {
    if (error instanceof Refusal && error.code === 'invalid_request') throw new MissingProgram(program)
    throw error
  }
}
