import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A hash of everything that a build reads, but the packages. `build.json` tells of which sources a build is. */
export async function hashSources(root: string): Promise<string> {
  const hash = createHash('sha256')
  for (const folder of ['core', 'plugins', 'adapters']) {
    const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    for (const file of files.toSorted()) hash.update(`${file.slice(root.length)}\0`).update(await readFile(file))
  }
  for (const name of ['package.json', 'package-lock.json', 'tsconfig.json', 'svc.config.ts'])
    hash.update(await readFile(join(root, name)).catch(() => '' /* a package has no lock file */))
  return hash.digest('hex').slice(0, 32)
}
