import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository's `svc.config.ts` and what the build compiled it to. */
export interface ShippedConfig {
  readonly source: string
  readonly compiled: string
}

/**
 * Lies in the build, so that a start needs no compiler; `undefined` without a build or when the source was edited
 * since.
 */
export function findShippedConfig(): ShippedConfig | undefined {
  const here = dirname(fileURLToPath(import.meta.url))
  // Built code lies in dist/ or dist/core/.
  const folder = [here, dirname(here)].find((one) => existsSync(join(one, 'build.json')))
  if (folder === undefined) return undefined
  const compiled = join(folder, 'svc.config.js')
  if (!existsSync(compiled)) return undefined
  const source = join(dirname(folder), 'svc.config.ts')
  const edited = statSync(source, { throwIfNoEntry: false })
  return edited && edited.mtimeMs > statSync(compiled).mtimeMs ? undefined : { source, compiled }
}
