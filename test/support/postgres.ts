import { openAsBlob } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cachedBuild } from './cached-build.ts'

const manifest = fileURLToPath(new URL('../../node_modules/@electric-sql/pglite/package.json', import.meta.url))

/**
 * The files of an empty database server. PGlite makes them in four seconds and loads them in less than one, so they
 * are made once for each of its versions.
 */
export async function emptyCluster(): Promise<Blob> {
  const { version } = JSON.parse(await readFile(manifest, 'utf8')) as { version: string }
  const folder = await cachedBuild('postgres', version, async (fresh) => {
    const { PGlite } = await import('@electric-sql/pglite')
    const server = await PGlite.create()
    try {
      const files = await server.dumpDataDir('none')
      await writeFile(join(fresh, 'cluster.tar'), files.stream())
    } finally {
      await server.close()
    }
  })
  return await openAsBlob(join(folder, 'cluster.tar'))
}
