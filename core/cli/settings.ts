import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { findHome, loadConfig } from '../config/load.ts'
import type { LoadedConfig } from '../config/load.ts'
import { isTree } from '../config/shape.ts'
import { readVariables } from '../process/inherited.ts'

/** Where a command was told to look. */
export interface Place {
  readonly home: string
  readonly configFile: string | undefined
}
export function findPlace(args: { readonly home?: string | undefined; readonly config?: string | undefined }): Place {
  return { home: findHome(args.home, process.env, process.cwd()), configFile: args.config }
}

/** The configuration as the daemon of this home gets it. Throws `ConfigError`. */
export async function loadSettings(place: Place, flags: Readonly<Record<string, unknown>> = {}): Promise<LoadedConfig> {
  return await loadConfig({
    home: place.home,
    configFile: place.configFile,
    cwd: process.cwd(),
    env: readVariables(),
    flags,
    ...(await readShipped()),
  })
}

/** The repository's `svc.config.ts` lies compiled in the build, so that a start needs no compiler; an edited one is read itself. */
async function readShipped(): Promise<{ shipped?: Readonly<Record<string, unknown>>; shippedFrom?: string }> {
  const here = dirname(fileURLToPath(import.meta.url))
  // Built code lies in dist/ or dist/core/.
  const folder = [here, dirname(here)].find((one) => existsSync(join(one, 'build.json')))
  const compiled = folder === undefined ? undefined : join(folder, 'svc.config.js')
  if (folder === undefined || compiled === undefined || !existsSync(compiled)) return {}
  const source = join(dirname(folder), 'svc.config.ts')
  const edited = statSync(source, { throwIfNoEntry: false })
  if (edited && edited.mtimeMs > statSync(compiled).mtimeMs) return {}
  const loaded: { default?: unknown } = await import(pathToFileURL(compiled).href)
  return isTree(loaded.default) ? { shipped: loaded.default, shippedFrom: source } : {}
}
