import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { AnyPlugin } from './define.ts'
import { installedFolders } from '../process/installation.ts'

/**
 * The definition in a folder, by evaluating its code in this process. Not for the daemon: for a process that may do
 * nothing else. Throws `PluginProblem`.
 */
export async function readDefinition(folder: string): Promise<AnyPlugin> {
  const { createLoader } = await import('./loader.ts')
  return await createLoader({ builtIns: new Set(), cacheDir: undefined }).load(folder, true)
}

/** Runs the code of one plugin in this process for the daemon that started it, until that ends it. */
export async function servePlugin(): Promise<void> {
  const { serve } = await import('./isolation/serve.ts')
  serve()
}

/** What such a process has to read of this installation, for `readable` of `forkProcess`. */
export function readableByLoader(): readonly string[] {
  const folders = installedFolders().filter(({ path, shallow }) => !shallow && isThere(path))
  const [root] = installedFolders()
  return [
    ...folders.map(({ path }) => realpathSync(path)),
    ...(root ? [join(root.path, 'package.json'), join(root.path, 'contracts')] : []),
  ]
}
const isThere = (path: string): boolean => {
  try {
    return dirname(realpathSync(path)) !== path
  } catch {
    return false /* a layout without this folder */
  }
}
