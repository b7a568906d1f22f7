import { accessSync, constants } from 'node:fs'
import { makeFolder } from '../storage/make-folder.ts'
import { exits, Failure } from './failure.ts'

/** Makes the home where there is none. Throws a `Failure` when this user cannot write to it. */
export function prepareHome(home: string): void {
  try {
    makeFolder(home)
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
    if (code === 'EEXIST' || code === 'ENOTDIR')
      throw new Failure(
        exits.config,
        `the home ${home} cannot be used: a file is where a folder has to be`,
        'choose another one with --home, or move the file away',
        { cause: error },
      )
    throw new Failure(
      exits.config,
      `the home ${home} cannot be used (${code})`,
      'make it writable for this user, or choose another one with --home',
      { cause: error },
    )
  }
}
