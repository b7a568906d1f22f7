import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { exits, Failure, locateHome } from 'svc/cli'

/** The folder of a plugin that is named by its path, or by its name in the home. */
export function findFolder(plugin: string, home: string | undefined): string {
  const given = resolve(plugin)
  const named = join(locateHome({ home }).home, 'plugins', plugin)
  const folder = [given, named].find((one) => existsSync(one))
  if (folder === undefined) throw new Failure(exits.notFound, `neither ${given} nor ${named} exists`, 'name a folder')
  return folder
}
