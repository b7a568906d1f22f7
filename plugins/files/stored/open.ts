import { readdir } from 'node:fs/promises'
import { Refusal } from 'svc/sdk'
import type { Logger, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import { hasCode } from '../disk.ts'
import type { WorkspaceService } from '../service.ts'
import type { SizeLimits } from '../size-limits.ts'
import { StoredFiles } from './store.ts'
import { StoredWorkspaces } from './workspaces.ts'

export interface OpenStoredDeps {
  readonly agents: Agents
  readonly db: PluginDatabase
  readonly sizes: SizeLimits
  readonly log: Logger
  /** The folder where workspaces were before. */
  readonly base: string
  readonly inFolders: WorkspaceService
}

/** Workspaces in the database. What lies in folders of this machine, and not in the database yet, is taken in first. */
export async function openStored(deps: OpenStoredDeps): Promise<StoredWorkspaces> {
  const { agents, base, db, log, sizes } = deps
  const files = new StoredFiles(db)
  for (const id of await readdir(base).catch(whenMissing)) {
    if (id.startsWith('.') || !(await agents.find(id)) || (await files.isMade(id))) continue
    const count = await takeIn(deps, files, id)
    log.info(`${count} files of agent ${id} were copied from ${base} into the database (plugins.files.mount)`)
  }
  return new StoredWorkspaces({ agents, files, sizes })
}

async function takeIn({ inFolders, log }: OpenStoredDeps, files: StoredFiles, id: string): Promise<number> {
  const found: (readonly [string, Uint8Array])[] = []
  for (const { name } of await inFolders.list(id, undefined, Number.MAX_SAFE_INTEGER)) {
    try {
      found.push([name, await inFolders.read(id, name, { maxBytes: Number.MAX_SAFE_INTEGER })])
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      log.warn(`file "${name}" of agent ${id} was not copied into the database: ${error.message}`)
    }
  }
  await files.make(id, found, new Date().toISOString())
  return found.length
}

function whenMissing(error: unknown): never[] {
  if (hasCode(error, 'ENOENT')) return []
  throw error
}
