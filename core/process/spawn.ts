import type { Scope } from '../scope/scope.ts'
import type { Admission, ConnectionFailure, Spawn } from './child.ts'
import { safePath } from './environment.ts'
import { exposedVariables } from './inherited.ts'
import { noFolders, readable, refuseCodeWorkspace, writable } from './folders.ts'
import type { DaemonFolders } from './folders.ts'
import type { Launcher } from './launcher.ts'
import { findProgram, hasProgram } from './program.ts'
import type { ProgramProxy } from './running-program.ts'
import type { Spawner } from './spawner.ts'

export interface SpawnDeps {
  /** Folders of the daemon that untrusted programs may not read or change. */
  readonly folders?: DaemonFolders
  /** How programs are confined. */
  readonly launcher?: () => Promise<Launcher>
  /** Opens the way to the network for one program. Absent: no program has a network. */
  readonly openProxy?: (admits: Admission, onFailure?: ConnectionFailure) => Promise<ProgramProxy>
}

/** Chosen when the first program starts, once for the process: what the system supports does not change. */
let systemLauncher: Promise<Launcher> | undefined
const findSystemLauncher = (): Promise<Launcher> =>
  (systemLauncher ??= import('./launcher.ts').then(({ createLauncher }) => createLauncher(works)))

/** Starts programs for one plugin: each is registered with the plugin's scope and ends with it. */
export function createSpawn(scope: Scope, deps: SpawnDeps = {}): Spawn {
  const { folders = noFolders, launcher = findSystemLauncher } = deps
  let spawner: Promise<Spawner> | undefined
  // Loaded with the first program.
  const openSpawner = (): Promise<Spawner> =>
    (spawner ??= import('./spawner.ts').then(({ Spawner }) => new Spawner(scope, { ...deps, folders, launcher })))
  return {
    find: findProgram,
    has: hasProgram,
    isolation: async () => (await launcher()).isolation,
    checkFolders(kind, key, named) {
      for (const folder of named) (kind === 'read' ? readable : writable)(folder, key, folders)
    },
    checkWorkspace: (folder) => refuseCodeWorkspace(folder, folders),
    protectedFolders: () => ({ code: folders.code.map(({ path }) => path), hidden: folders.hidden }),
    exposed: exposedVariables,
    start: async (request) => await (await openSpawner()).start(request),
  }
}

/** Whether a command exits with code 0. */
export async function works([command = '', ...args]: readonly string[]): Promise<boolean> {
  const { execFile } = await import('node:child_process')
  return await new Promise((resolve) => {
    execFile(command, args, { timeout: 2000, env: { PATH: safePath.join(':') }, windowsHide: true }, (error) =>
      resolve(!error),
    )
  })
}
