import { accessSync, constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { basename, isAbsolute, join, sep } from 'node:path'
import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'
import { safePath } from './environment.ts'

/** A program that was found on this machine. */
export interface Program {
  /** Absolute path to run. */
  readonly path: string
  /** Base names: of the requested command and of the real file. Rules about programs check both. */
  readonly names: readonly string[]
}

/**
 * Finds a program by its name in the safe folders and `path`, or by a path relative to `cwd`. Throws
 * `invalid_request` if it does not exist.
 */
export async function findProgram(command: string, cwd: string, path: readonly string[] = []): Promise<Program> {
  if (command === '' || command.length > 1024 || /\p{Cc}/u.test(command))
    throw new Refusal('invalid_request', 'The name of the program is empty, too long or has control characters')
  if (command.split(/[/\\]/).includes('..')) {
    enforced('subprocess_sandbox')
    throw new Refusal('forbidden', `"${command}": the name of a program may not contain ".."`)
  }
  const candidates = /[/\\]/.test(command)
    ? [isAbsolute(command) ? command : join(cwd, command)]
    : [...safePath.map((folder) => `${folder}${sep}${command}`), ...path.map((folder) => join(folder, command))]
  for (const candidate of candidates) {
    if (!(await isExecutable(candidate))) continue
    return { path: candidate, names: [...new Set([basename(command), basename(await realpath(candidate))])] }
  }
  throw new Refusal('invalid_request', `There is no program "${command}"`)
}

/** Whether `findProgram` would find a name. */
export function hasProgram(name: string, path: readonly string[] = []): boolean {
  return [...safePath, ...path].some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      // Missing or not executable: try the next folder.
      return false
    }
  })
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    // Missing or not executable: try the next folder.
    return false
  }
}
