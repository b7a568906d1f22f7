import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const caches = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))

/** A folder that `make` fills once for each `key`, whichever test asks first. Nobody writes into it afterwards. */
export async function cachedBuild(
  name: string,
  key: string,
  make: (folder: string) => Promise<unknown>,
): Promise<string> {
  const cache = join(caches, name)
  const folder = join(cache, key)
  if (existsSync(folder)) return folder
  await mkdir(cache, { recursive: true })
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
