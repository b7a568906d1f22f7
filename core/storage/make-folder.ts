import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf } from './failure.ts'

/**
 * Makes a folder and those above it that are missing, for this user only. The recursive mode of `mkdir` tries for ever
 * where the system answers `ENOENT` although the folder above exists, as `/proc` does.
 */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) === 'ENOENT' && statSync(dirname(path), { throwIfNoEntry: false }) === undefined) {
      makeFolder(dirname(path))
      makeFolder(path)
    } else if (!isFolder(path)) throw error
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
