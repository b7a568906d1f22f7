import { randomUUID } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { homeId, ListeningStarting } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import type { Hooks, Jobs, Logger, PluginContext, PluginDatabase } from 'svc/sdk'
import { MemberProblemsListed } from '../../cluster/contract.ts'
import type { Cluster } from '../../cluster/contract.ts'
import { hasCode } from '../disk.ts'
import type { Limits } from '../schema.ts'
import { mountId } from './mount-id.ts'
import { MountStore } from './store.ts'
import { FolderWatch, missing } from './watch.ts'

export interface CompareMountsDeps {
  /** The folder of workspaces. */
  readonly base: string
  readonly config: Limits
  readonly daemon: Pick<Daemon, 'config' | 'setUnready'>
  readonly db: PluginDatabase
  readonly hooks: Hooks
  readonly jobs: Jobs
  readonly log: Logger
  readonly optional: (service: 'cluster') => Cluster | undefined
  readonly own: PluginContext<Limits, {}, {}>['own']
}

const FILE = '.mount'
const LOOK_MS = 5_000

/**
 * Finds daemons that work on other files than this one: an id in the folder of workspaces says which folder it is.
 * Throws for a folder that is meant to be shared and cannot be, or is empty where there was one before. A shared folder is
 * watched from then on.
 */
export async function compareMounts(deps: CompareMountsDeps): Promise<FolderWatch | undefined> {
  const { base, config, daemon, db, hooks } = deps
  const home = homeId(daemon.config())
  const store = new MountStore(db)
  const id = mountId(config)
  if (id === undefined && config.path !== undefined)
    await (await import('./shared-folder.ts')).checkSharedFolder(base, join(base, FILE), store)
  const agree = async (): Promise<void> => {
    // A file in the database or a bucket has its row in the database.
    const value = config.mount === 'folder' ? 'folder' : 'database or s3'
    const otherwise = 'files that an agent writes at one would not be there at the others'
    await deps.optional('cluster')?.agree({ key: 'plugins.files.mount', value, otherwise })
  }
  await agree()
  // The others may be known only later.
  hooks.on(ListeningStarting, agree)
  const mount = id ?? (await idOf(base))
  await store.put(home, mount)
  hooks.on(MemberProblemsListed, async (listed) => {
    const others = await store.others(mount)
    return [
      ...listed,
      ...others.map((owner) => ({
        owner,
        text:
          'the files of its agents are not those of the daemon that answers: mount one folder in all of them ' +
          '(plugins.files.path), or set plugins.files.mount to "database" or to one bucket in all of them',
      })),
    ]
  })
  if (id !== undefined || config.path === undefined) return undefined
  return watchFolder(deps, mount, (shown) => store.put(home, shown))
}

function watchFolder(
  { base, daemon, jobs, log, own }: CompareMountsDeps,
  id: string,
  put: (mount: string) => Promise<void>,
): FolderWatch {
  const changed = (isThere: boolean): Promise<void> => put(isThere ? id : missing(id))
  const watch = new FolderWatch({ folder: base, marker: join(base, FILE), id, daemon, log, changed })
  own('state of the folder', () => daemon.setUnready('files', undefined))
  jobs.every('mount', LOOK_MS, () => watch.look())
  return watch
}

/** What says which folder it is; made by the first who looks. */
export async function idOf(base: string): Promise<string> {
  await mkdir(base, { recursive: true, mode: 0o700 })
  const file = join(base, FILE)
  await writeFile(file, randomUUID(), { flag: 'wx', mode: 0o600, flush: true }).catch((error: unknown) => {
    if (!hasCode(error, 'EEXIST')) throw error
  })
  return await readFile(file, 'utf8')
}
