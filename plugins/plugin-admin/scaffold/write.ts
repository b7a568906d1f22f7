import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { LAUNCHER } from './template.ts'

/** Writes the files of a template into a folder. Throws for a file that exists. */
export async function writeFiles(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  for (const [name, text] of files) {
    const path = join(folder, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text, { flag: 'wx', mode: name === LAUNCHER ? 0o755 : 0o644 })
  }
}
