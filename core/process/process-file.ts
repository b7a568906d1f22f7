import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

let built: string | undefined

/** What runs from source starts the processes of this folder of a build from now on, which takes a part of the time. */
export function useBuiltProcesses(folder: string): void {
  built = folder
}

/**
 * The file of a process: its `source`, seen from this folder, or `name` where the build has put it. Throws if the
 * installation has neither.
 */
export function findProcess(source: string, name: string): string {
  // Built code is in dist/ or dist/core/, source code in core/process/.
  const places = [source, `./processes/${name}`, `../processes/${name}`].map((place) =>
    fileURLToPath(new URL(place, import.meta.url)),
  )
  const file = [...(built === undefined ? [] : [join(built, name)]), ...places].find((path) => existsSync(path))
  if (file === undefined) throw new Error(`this installation is incomplete: processes/${name} is missing`)
  return file
}
