import { readdir } from 'node:fs/promises'
import { Refusal } from 'svc/sdk'
import type { Logger } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import { hasCode } from '../disk.ts'
import type { WorkspaceService } from '../service.ts'
import type { SizeLimits } from '../size-limits.ts'
import type { FileStore, NewFile } from './store.ts'
import { removeCopies } from './working-copy.ts'
import { StoredWorkspaces } from './workspaces.ts'
import type { StoredWorkspacesDeps } from './workspaces.ts'

export interface OpenStoredDeps {
  readonly agents: Agents
  readonly files: FileStore
  readonly mount: string
  readonly sizes: SizeLimits
  readonly log: Logger
  /** The folder where workspaces were before. */
  readonly base: string
  readonly inFolders: WorkspaceService
  readonly copies: StoredWorkspacesDeps['copies']
}

/**
 * Workspaces that are no folders. What lies in folders of this machine, and not in them yet, is taken in first; throws
 * when it cannot be stored.
 */
export async function openStored(deps: OpenStoredDeps): Promise<StoredWorkspaces> {
  const { agents, base, copies, files, log, mount, sizes } = deps
  const left = await removeCopies(copies.base)
  if (left > 0) log.warn(`${left} programs were cut off: what they did to files of workspaces was not kept`)
  for (const id of await readdir(base).catch(whenMissing)) {
    if (id.startsWith('.') || !(await agents.find(id)) || (await files.isMade(id))) continue
    const count = await takeIn(deps, id)
    log.info(`${count} files of agent ${id} were copied from ${base} to where plugins.files.mount = "${mount}" says`)
  }
  return new StoredWorkspaces({ agents, copies, files, mount, sizes })
}

async function takeIn({ files, inFolders, log }: OpenStoredDeps, id: string): Promise<number> {
  const found: NewFile[] = []
  for (const { name } of await inFolders.list(id, undefined, Number.MAX_SAFE_INTEGER)) {
    try {
      found.push({ path: name, content: await inFolders.read(id, name, { maxBytes: Number.MAX_SAFE_INTEGER }) })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      log.warn(`file "${name}" of agent ${id} was not copied: ${error.message}`)
    }
  }
  await files.make(id, found, new Date().toISOString())
  return found.length
}

function whenMissing(error: unknown): never[] {
  if (hasCode(error, 'ENOENT')) return []
  throw error
}
