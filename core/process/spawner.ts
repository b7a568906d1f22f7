import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { Refusal } from '../errors/error.ts'
import { enforced } from '../scope/enforcement.ts'
import type { Scope } from '../scope/scope.ts'
import type { Child, SpawnRequest } from './child.ts'
import { readable, realPath, refuseCodeWorkspace, writable } from './folders.ts'
import type { DaemonFolders } from './folders.ts'
import type { Launch, Launcher } from './launcher.ts'
import { findProgram } from './program.ts'
import type { ProgramProxy, RunningProgram, RunningProgramOptions } from './running-program.ts'
import type { SpawnDeps } from './spawn.ts'

const TIMEOUT_MS = 30_000
const MAX_TIMEOUT_MS = 120_000
const MAX_PROGRAMS = 64

type SpawnerDeps = SpawnDeps & Required<Pick<SpawnDeps, 'folders' | 'launcher'>>

/** Starts the programs of one plugin. */
export class Spawner {
  readonly #scope: Scope
  readonly #deps: SpawnerDeps
  #running = 0

  constructor(scope: Scope, deps: SpawnerDeps) {
    this.#scope = scope
    this.#deps = deps
  }

  async start(request: SpawnRequest): Promise<Child> {
    const { signal } = request
    signal?.throwIfAborted()
    checkRequest(request)
    if (this.#running >= MAX_PROGRAMS)
      throw new Refusal('rate_limit', `This plugin already runs ${MAX_PROGRAMS} programs`, { retryAfterSecs: 5 })
    if (!isUsable(this.#scope))
      throw new Refusal('service_unavailable', 'No program is started any more: its plugin is being unloaded')
    this.#running++
    let network: RunningProgramOptions['network']
    let child: RunningProgram
    try {
      const { path } = await findProgram(request.command, request.cwd, request.path)
      const temporary = join(request.cwd, '.tmp')
      await mkdir(temporary, { recursive: true, mode: 0o700 })
      const launcher = await this.#deps.launcher()
      const launch = readLaunch(request, launcher, this.#deps.folders)
      network = await this.#openNetwork(request, launcher, launch)
      const { spawn } = await import('node:child_process')
      const { RunningProgram } = await import('./running-program.ts')
      child = new RunningProgram({
        spawn,
        launcher,
        path,
        launch: { ...launch, proxy: network?.proxy.socket },
        temporary,
        request,
        network,
      })
      await child.started
    } catch (error) {
      this.#running--
      await network?.proxy.close()
      throw error
    }
    this.#endWithScope(child, request, network?.proxy)
    return child
  }

  async #openNetwork(
    { network: admits, onConnectionFailure }: SpawnRequest,
    { isolation }: Launcher,
    { operator }: Launch,
  ): Promise<RunningProgramOptions['network']> {
    if (!admits || isolation.network !== 'proxy' || operator) return undefined
    const proxy = await this.#deps.openProxy?.(admits, onConnectionFailure)
    return proxy && { proxy, variables: (await import('./launcher.ts')).proxyVariables }
  }

  #endWithScope(child: RunningProgram, request: SpawnRequest, proxy: ProgramProxy | undefined): void {
    // A scope that closed while the program started accepts no entry any more.
    const unregister = isUsable(this.#scope)
      ? this.#scope.own('process', `${request.command} ${child.pid}`, async () => {
          await child.kill()
        })
      : undefined
    void child.ended.then(async () => {
      this.#running--
      await proxy?.close()
      return unregister?.()
    })
    if (request.signal?.aborted || !unregister) void child.kill()
  }
}

/** Running work of a retired copy may still start programs. */
function isUsable({ state }: Scope): boolean {
  return state === 'open' || state === 'retired'
}

function checkRequest({ background, timeoutMs, cwd, home }: SpawnRequest): void {
  if (background && timeoutMs === undefined) throw new Error('a background program needs timeoutMs')
  if (!isAbsolute(cwd)) throw new Error('cwd of a program must be an absolute folder')
  if (home !== undefined && !isAbsolute(home)) throw new Error('home of a program must be an absolute folder')
}

/**
 * What the program may use of this machine. Folders are checked at every start: a link may lead elsewhere than it did
 * at the last check.
 */
function readLaunch(request: SpawnRequest, { isolation }: Launcher, folders: DaemonFolders): Launch {
  const { cwd, home, read = [], write = [], path = [], timeoutMs, background } = request
  const common = {
    timeoutMs: background ? (timeoutMs ?? TIMEOUT_MS) : Math.min(timeoutMs ?? TIMEOUT_MS, MAX_TIMEOUT_MS),
    folder: realPath(cwd),
    hidden: folders.hidden.map(realPath),
    code: folders.code.filter(({ shallow }) => shallow !== true).map(({ path: each }) => realPath(each)),
    proxy: undefined,
    confinesItself: request.trust === undefined && request.confinesItself === true,
  }
  if (request.trust === 'operator')
    return {
      ...common,
      operator: true,
      read: path.filter((folder) => existsSync(folder)),
      write: [...(home === undefined ? [] : [home]), ...write],
    }
  refuseCodeWorkspace(cwd, folders)
  if (isolation.level === 'none' && request.unconfined !== true) throw refusedUnconfined(isolation.gaps)
  return {
    ...common,
    operator: false,
    read: [...path.filter((folder) => existsSync(folder)), ...read].map((folder) => readable(folder, 'read', folders)),
    write: write.map((folder) => writable(folder, 'write', folders)),
  }
}

function refusedUnconfined(gaps: readonly string[]): Refusal {
  enforced('subprocess_sandbox')
  return new Refusal(
    'forbidden',
    `No untrusted program runs here, because none could be confined: ${gaps.join('; ')}. ` +
      'Install bubblewrap, or set plugins.shell.unconfined in the configuration file to run them unconfined',
  )
}
