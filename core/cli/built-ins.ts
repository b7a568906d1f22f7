import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { builtInFolders } from '../host/folders.ts'
import type { PluginCli } from './plugin-cli.ts'

/**
 * What the built-in plugins add to the command line. The build replaces this module by one that imports every `cli.ts`.
 */
export async function loadBuiltIns(): Promise<readonly PluginCli[]> {
  const files = (await builtInFolders()).map((folder) => join(folder, 'cli.ts')).filter((file) => existsSync(file))
  return await Promise.all(
    files.map(async (file) => {
      const loaded = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { readonly default: PluginCli }
      return loaded.default
    }),
  )
}
