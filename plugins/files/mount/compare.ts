import { randomUUID } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { homeId } from 'svc/internal'
import type { Daemon } from 'svc/internal'
import type { Hooks, PluginDatabase } from 'svc/sdk'
import { MemberProblemsListed } from '../../cluster/contract.ts'
import { hasCode } from '../disk.ts'
import type { Limits } from '../schema.ts'
import { MountStore } from './store.ts'

export interface CompareMountsDeps {
  /** The folder of workspaces. */
  readonly base: string
  readonly config: Limits
  readonly daemon: Pick<Daemon, 'config'>
  readonly db: PluginDatabase
  readonly hooks: Hooks
}

const FILE = '.mount'

/**
 * Finds daemons that work on other files than this one: an id in the folder of workspaces says which folder it is.
 * Throws for a folder that is meant to be shared and cannot be, or is empty where there was one before.
 */
export async function compareMounts({ base, config, daemon, db, hooks }: CompareMountsDeps): Promise<void> {
  const home = homeId(daemon.config())
  const store = new MountStore(db)
  const id = mountId(config)
  if (id === undefined && config.path !== undefined)
    await (await import('./shared-folder.ts')).checkSharedFolder(base, join(base, FILE), store)
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
}

/** Made by the first daemon that looks. */
async function idOf(base: string): Promise<string> {
  await mkdir(base, { recursive: true, mode: 0o700 })
  const file = join(base, FILE)
  await writeFile(file, randomUUID(), { flag: 'wx', mode: 0o600, flush: true }).catch((error: unknown) => {
    if (!hasCode(error, 'EEXIST')) throw error
  })
  return await readFile(file, 'utf8')
}

/** The same in daemons that work on the same files; `undefined` for a folder, which says it itself. */
function mountId({ mount, s3 }: Limits): string | undefined {
  if (mount === 'folder') return undefined
  return mount === 's3' && s3 ? `s3 ${s3.endpoint ?? s3.region} ${s3.bucket}/${s3.prefix}` : mount
}
