import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal } from 'svc/sdk'
import type { Workspaces } from './contract.ts'
import { accessProblem, accessRefusal, hasCode } from './disk.ts'

/** Entries of a folder in one answer. */
const MAX_ENTRIES = 1000

/** The entries of a folder of a workspace as JSON, for a tool. Throws `file_not_found`; `given` is how it was named. */
export async function listEntries(
  workspaces: Workspaces,
  agentId: string,
  folder: string,
  given: string,
): Promise<string> {
  if (!workspaces.isFolder) return await listStored(workspaces, agentId, folder)
  return workspaces.within(agentId, folder, listFolder).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR'))
      throw new Refusal('file_not_found', `No folder "${given}"`, { cause: error })
    throw accessRefusal(given, error) ?? error
  })
}

/** Of a workspace that is no folder: its folders are those of its files. */
async function listStored(workspaces: Workspaces, agentId: string, folder: string): Promise<string> {
  const start = folder === '' ? 0 : folder.length + 1
  const entries = new Map<string, object>()
  for (const file of await workspaces.list(agentId, folder, Number.MAX_SAFE_INTEGER)) {
    const [name = '', ...below] = file.name.slice(start).split('/')
    entries.set(name, below.length > 0 ? { name, type: 'folder' } : { name, type: 'file', size_bytes: file.sizeBytes })
  }
  return JSON.stringify({ entries: [...entries.values()].slice(0, MAX_ENTRIES), total: entries.size })
}

async function listFolder(folder: string): Promise<string> {
  const found = await readdir(folder, { withFileTypes: true })
  // Links are left out: they may lead anywhere.
  const entries = found
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  return JSON.stringify({
    entries: await Promise.all(entries.slice(0, MAX_ENTRIES).map((entry) => toEntry(folder, entry))),
    total: entries.length,
  })
}

async function toEntry(folder: string, entry: Dirent): Promise<object> {
  const { name } = entry
  if (entry.isDirectory()) return { name, type: 'folder' }
  try {
    return { name, type: 'file', size_bytes: (await lstat(join(folder, name))).size }
  } catch (error) {
    const problem = hasCode(error, 'ENOENT') ? 'removed while the folder was listed' : accessProblem(error)
    if (problem === undefined) throw error
    return { name, type: 'file', size_bytes: null, problem }
  }
}
