import type { Logger } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import { compareWorkspace, copyWorkspace } from '../copy/copy-workspace.ts'
import { FolderPlace } from '../copy/folder-place.ts'
import { StoredPlace } from '../copy/stored-place.ts'
import type { SizeLimits } from '../size-limits.ts'
import type { FileStore, StoredFiles } from './store.ts'
import { removeCopies } from './working-copy.ts'
import { StoredWorkspaces } from './workspaces.ts'
import type { StoredWorkspacesDeps } from './workspaces.ts'

export interface OpenStoredDeps {
  readonly agents: Agents
  readonly files: FileStore
  readonly rows: Pick<StoredFiles, 'agents'>
  readonly mount: string
  readonly sizes: SizeLimits
  readonly log: Logger
  /** The folder where workspaces were before. */
  readonly base: string
  readonly copies: StoredWorkspacesDeps['copies']
}

/**
 * Workspaces that are no folders. What lies in folders of this machine, and not in them yet, is taken in first; throws
 * when it cannot be stored.
 */
export async function openStored(deps: OpenStoredDeps): Promise<StoredWorkspaces> {
  const { agents, base, copies, files, log, mount, rows, sizes } = deps
  const left = await removeCopies(copies.base)
  if (left > 0) log.warn(`${left} programs were cut off: what they did to files of workspaces was not kept`)
  const from = new FolderPlace(base)
  const to = new StoredPlace(`plugins.files.mount = "${mount}"`, rows, files)
  for (const id of await from.ids()) {
    if (!(await agents.find(id)) || (await files.isMade(id))) continue
    const found = await compareWorkspace(from, to, id)
    const leftOut = await copyWorkspace(from, to, found)
    for (const { name, why } of leftOut) log.warn(`file "${name}" of agent ${id} was not copied: ${why}`)
    const count = found.same + found.missing.length + found.other.length + found.leftOut.length - leftOut.length
    log.info(`${count} files of agent ${id} were copied from ${base} to where plugins.files.mount = "${mount}" says`)
  }
  return new StoredWorkspaces({ agents, copies, files, mount, sizes })
}
