import { existsSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { HomeRecord } from 'svc/internal'
import type { DaemonConfig } from 'svc/internal'
import type { Limits } from '../schema.ts'

const FILE = 'files-folder.json'
const NAME = 'last'

/**
 * The folder of workspaces. Where `plugins.files.mount` names another place, it is the one they lay in the last time, so
 * that they are taken along also when `path` went with the change. Throws when that one is not there.
 */
export async function workspacesFolder(
  { mount, path }: Pick<Limits, 'mount' | 'path'>,
  { dataDir, homeDir }: Pick<DaemonConfig, 'dataDir' | 'homeDir'>,
): Promise<string> {
  const record = new HomeRecord(homeDir, FILE, v.object({ folder: v.string() }))
  const named = path ?? join(dataDir, 'workspaces')
  const last = (await record.find(NAME))?.folder
  if (mount === 'folder') {
    if (last !== named) await record.put(NAME, { folder: named })
    return named
  }
  if (path !== undefined || last === undefined || last === named) return named
  if (existsSync(last)) return last
  throw new Error(
    `plugins.files: the files of agents were in ${last}, which is not there, so they cannot be taken along to ` +
      `mount = "${mount}": mount it, or remove ${join(homeDir, FILE)} to go on without them`,
  )
}
