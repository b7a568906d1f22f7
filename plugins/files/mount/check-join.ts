import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { homeId, messageOf } from 'svc/internal'
import type { OfflineDeps } from 'svc/internal'
import { whenMissing } from '../disk.ts'
import { Limits } from '../schema.ts'
import { mountId } from './mount-id.ts'
import { checkSharedFolder } from './shared-folder.ts'
import { FOLDER_ID, MountStore } from './store.ts'

const Config = v.looseObject({
  home_dir: v.string(),
  data_dir: v.string(),
  plugins: v.looseObject({
    files: v.optional(v.looseObject({ s3: v.optional(v.record(v.string(), v.unknown())) }), {}),
  }),
})
/** What is wrong with where a home that is to join has its files, and what to do about it; none: nothing. */
export interface JoinProblem {
  readonly problem?: string
  readonly advice?: string
}

/** Whether a home would work on the files of the daemons on a database. */
export async function checkJoin({ config, db }: Pick<OfflineDeps, 'config' | 'db'>): Promise<JoinProblem> {
  const { home_dir: homeDir, data_dir: dataDir, plugins } = v.parse(Config, config)
  const { s3, ...rest } = plugins.files
  // The secret is not shown here.
  const limits = v.parse(Limits, { ...rest, ...(s3 && { s3: { ...s3, secret_access_key: undefined } }) })
  const base = limits.path ?? join(dataDir, 'workspaces')
  const store = db && new MountStore(db)
  const others = store && (await store.isThere()) ? await store.ofOthers(homeId({ homeDir })) : []
  const stored = mountId(limits)
  try {
    const mounts = { mounts: async () => others }
    if (stored === undefined && limits.path !== undefined) await checkSharedFolder(base, join(base, '.mount'), mounts)
  } catch (error) {
    return { problem: messageOf(error), advice: 'mount the folder of the other daemons there' }
  }
  const own = stored ?? (await readId(join(base, '.mount')))
  if (others.length === 0 || (own !== undefined && others.includes(own))) return {}
  return {
    problem:
      `the files of agents lie in ${others.map(describe).join(' or in ')} for the other daemons, ` +
      `and in ${stored === undefined ? `the folder ${base}` : describe(stored)} for this home`,
    advice: others.map(howTo).join(', or '),
  }
}

async function readId(marker: string): Promise<string | undefined> {
  return await readFile(marker, 'utf8').catch(whenMissing)
}

function describe(mount: string): string {
  if (mount === 'database') return 'the database'
  if (FOLDER_ID.test(mount)) return `the folder whose .mount has ${mount}`
  const [, place, bucket = ''] = mount.split(' ')
  return `the bucket ${bucket} at ${place}`
}
function howTo(mount: string): string {
  if (mount === 'database') return 'set plugins.files.mount = "database" in config.toml of this home'
  if (FOLDER_ID.test(mount))
    return 'mount that folder on this machine, and name it with plugins.files.path in config.toml of this home'
  return 'set plugins.files.mount = "s3" and [plugins.files.s3] as they have it in config.toml of this home'
}
