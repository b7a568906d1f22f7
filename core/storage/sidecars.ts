import { existsSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { extname, join } from 'node:path'

/**
 * Copies the sidecar files of the database: files in the home that belong to it. Call it before copying the database,
 * so that what a sidecar records may be behind the copy and never ahead of it.
 */
export async function copySidecars(home: string, sidecars: readonly string[], copy: string): Promise<void> {
  for (const name of sidecars) {
    const file = join(home, name)
    if (existsSync(file)) await copyFile(file, copy.replace(/\.db$/, `.${name}`))
  }
}

/** The copy of a sidecar file that belongs to a copy of the database. */
export function findSidecarCopy(copy: string, name: string): string | undefined {
  // Copies of the backup plugin, and those of earlier versions, are named after the extension alone.
  return [`.${name}`, extname(name)].map((ending) => copy.replace(/\.db$/, ending)).find((file) => existsSync(file))
}
