import { hash } from 'node:crypto'
import type { ArchivedFile } from './read-archive.ts'

/** SHA-256 over the names and hashes of the files in order. */
export function hashOfFiles(files: readonly ArchivedFile[]): string {
  const lines = files
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, bytes }) => `${hash('sha256', bytes)}  ${name}\n`)
  return hash('sha256', lines.join(''))
}
