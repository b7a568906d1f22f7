import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import type { Entry } from './data.ts'
import { readOwnJson } from 'svc/internal'

const FILE = 'models.json'
/**
 * Each entry was checked when the file was made, and a test compares the file with the packages: to check them again
 * here would take 25 ms.
 */
const Contents = v.object({ version: v.string(), entries: v.custom<readonly Entry[]>((value) => Array.isArray(value)) })
export type Contents = v.InferOutput<typeof Contents>

/** The models shipped with the daemon: beside the source of this plugin, or in `catalog/` of the build. */
export async function readShipped(moduleUrl: string): Promise<Contents> {
  let folder = dirname(fileURLToPath(moduleUrl))
  for (;;) {
    const file = [join(folder, FILE), join(folder, 'catalog', FILE)].find((candidate) => existsSync(candidate))
    if (file !== undefined) return v.parse(Contents, readOwnJson(await readFile(file, 'utf8')))
    const parent = dirname(folder)
    if (parent === folder || existsSync(join(folder, 'package.json')))
      throw new Error(`${FILE} was not found beside the code: the installation is incomplete`)
    folder = parent
  }
}
