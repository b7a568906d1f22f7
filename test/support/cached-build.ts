import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runLock } from './run-locks.ts'

const caches = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))
const KEPT_MS = 86_400_000

/** A folder that `make` fills once for each `key`, whichever test asks first. Nobody writes into it afterwards. */
export async function cachedBuild(
  name: string,
  key: string,
  make: (folder: string) => Promise<unknown>,
): Promise<string> {
  const cache = join(caches, name)
  const folder = join(cache, key)
  if (existsSync(folder)) return folder
  using _lock = await runLock(folder)
  if (existsSync(folder)) return folder
  await mkdir(cache, { recursive: true })
  await removeOld(cache)
  const fresh = await mkdtemp(join(cache, 'building-'))
  try {
    await make(fresh)
    await rename(fresh, folder)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    // Another test made it meanwhile.
    if (!existsSync(folder)) throw error
  }
  return folder
}

/** Every state of the sources has a folder of its own: those of yesterday are not asked for again. */
async function removeOld(cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const folder = join(cache, name)
    const facts = await stat(folder).catch(() => undefined /* removed by another test */)
    if (facts && Date.now() - facts.mtimeMs > KEPT_MS) await rm(folder, { recursive: true, force: true })
  }
}
