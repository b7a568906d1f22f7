import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { inFolder } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { WorkspaceFile } from './contract.ts'
import { accessProblem, accessRefusal, hasCode } from './disk.ts'

/** The name of a file that a crash left half written. */
const PART = /(^|\/)\.[0-9a-f-]{36}\.part$/

/** The plain files below a folder of a workspace (default: all of it), as `Workspaces.list` says. */
export async function listFiles(
  root: string,
  folder: string | undefined,
  limit: number,
): Promise<readonly WorkspaceFile[]> {
  const start = folder ?? ''
  const found: WorkspaceFile[] = []
  const waiting = [start]
  while (waiting.length > 0 && found.length < limit) {
    const name = waiting.shift() ?? ''
    try {
      const { files, folders } = await inFolder(root, name, (path) => readFolder(path, name, limit - found.length))
      found.push(...files)
      waiting.push(...folders)
    } catch (error) {
      const isMissing = hasCode(error, 'ENOENT', 'ENOTDIR')
      if (name === start && (folder !== undefined || !isMissing)) throw listFailure(start, error)
      // A folder may be removed or become a link while the listing runs.
      if (error instanceof Refusal || isMissing) continue
      found.push(unreadable(name, error))
    }
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The plain files in one folder, at most `limit`, and its folders. */
async function readFolder(
  path: string,
  folder: string,
  limit: number,
): Promise<{ readonly files: readonly WorkspaceFile[]; readonly folders: readonly string[] }> {
  const files: WorkspaceFile[] = []
  const folders: string[] = []
  const entries = await readdir(path, { withFileTypes: true })
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) folders.push(name)
    if (!entry.isFile() || PART.test(name) || files.length >= limit) continue
    const file = await statFile(join(path, entry.name), name)
    if (file) files.push(file)
  }
  return { files, folders }
}

/** `undefined` for a file that was removed in between, and for a hard link. */
async function statFile(path: string, name: string): Promise<WorkspaceFile | undefined> {
  try {
    const stats = await lstat(path)
    if (!stats.isFile() || stats.nlink !== 1) return undefined
    return { name, sizeBytes: stats.size, modifiedAt: stats.mtime.toISOString() }
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    return unreadable(name, error)
  }
}

/** Throws for failures that are not about access. */
function unreadable(name: string, error: unknown): WorkspaceFile {
  const problem = accessProblem(error)
  if (problem === undefined) throw error
  return { name, sizeBytes: 0, modifiedAt: null, problem }
}

function listFailure(folder: string, error: unknown): unknown {
  if (hasCode(error, 'ENOENT', 'ENOTDIR'))
    return new Refusal('file_not_found', `No folder "${folder}"`, { cause: error })
  return accessRefusal(folder === '' ? '.' : folder, error) ?? error
}
