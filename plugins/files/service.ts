import type { Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { confine, enforced, inFolder, openConfined, removeConfined, replaceConfined, splitName } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { WorkspaceFile, Workspaces } from './contract.ts'
import { identityFiles } from './identity-files.ts'
import { accessProblem, accessRefusal, diskRefusal, hasCode } from './disk.ts'
import type { Folders } from './folders.ts'

export interface WorkspaceDeps {
  readonly agents: Agents
  readonly folders: Folders
  readonly maxFileBytes: number
  readonly maxUploadBytes: number
}

/** The name of a file that a crash left half written. */
const PART = /(^|\/)\.[0-9a-f-]{36}\.part$/
const ESCAPE = /^[/~\\]|^[a-z]:|(^|[\\/])\.\.([\\/]|$)/i

export class WorkspaceService implements Workspaces {
  readonly #deps: WorkspaceDeps
  constructor(deps: WorkspaceDeps) {
    this.#deps = deps
  }

  async root(agentId: string): Promise<string> {
    const agent = await this.#deps.agents.require(agentId)
    return this.#whileAlive(agent.id, () => this.#deps.folders.open(agent))
  }
  async resolve(agentId: string, name: string): Promise<string> {
    return confine(await this.#root(agentId, name), name)
  }
  async within<T>(
    agentId: string,
    folder: string,
    work: (path: string, made: boolean) => Promise<T>,
    options: { readonly make?: boolean } = {},
  ): Promise<T> {
    const root = folder === '' ? await this.root(agentId) : await this.#root(agentId, folder)
    return this.#whileAlive(agentId, () => inFolder(root, folder, work, options))
  }

  async read(agentId: string, name: string, options: { readonly maxBytes?: number } = {}): Promise<Uint8Array> {
    const root = await this.#root(agentId, name)
    const limit = options.maxBytes ?? this.#deps.maxFileBytes
    const found = await statConfined(root, name)
    if (found?.isDirectory()) throw new Refusal('invalid_request', `"${name}" is a folder`)
    const handle =
      found &&
      (await openConfined(root, name, 'read').catch((error: unknown) => {
        throwUnlessMissing(accessRefusal(name, error) ?? error)
      }))
    if (!handle) throw new Refusal('file_not_found', `No file "${name}"`)
    try {
      const { size } = await handle.stat()
      if (size > limit)
        throw new Refusal('payload_too_large', `"${name}" has ${size} bytes; at most ${limit} are read`, {
          details: { size_bytes: size, limit_bytes: limit },
        })
      return await handle.readFile()
    } finally {
      await handle.close()
    }
  }

  async write(agentId: string, name: string, content: string | Uint8Array): Promise<{ readonly created: boolean }> {
    const root = await this.#root(agentId, name)
    this.checkSize(name, Buffer.byteLength(content))
    return this.#whileAlive(agentId, async () => {
      try {
        return await replaceConfined(root, name, content)
      } catch (error) {
        throw diskRefusal(error) ?? error
      }
    })
  }

  async remove(agentId: string, name: string): Promise<boolean> {
    const root = await this.#root(agentId, name)
    const found = await statConfined(root, name)
    if (!found) return false
    if (!found.isFile()) throw new Refusal('invalid_request', `"${name}" is a folder`)
    return removeConfined(root, name)
  }

  async list(agentId: string, folder?: string, limit = 1000): Promise<readonly WorkspaceFile[]> {
    const root = folder === undefined ? await this.root(agentId) : await this.#root(agentId, folder)
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

  /** Throws `payload_too_large`. */
  checkSize(name: string, size: number): void {
    const {
      folders: { identityBytes },
      maxFileBytes,
      maxUploadBytes,
    } = this.#deps
    const [limit, key] = identityFiles.has(name)
      ? ([identityBytes, 'max_identity_bytes'] as const)
      : name.startsWith('uploads/') && maxUploadBytes > maxFileBytes
        ? ([maxUploadBytes, 'max_upload_bytes'] as const)
        : ([maxFileBytes, 'max_file_bytes'] as const)
    if (size > limit)
      throw new Refusal('payload_too_large', `"${name}": at most ${limit} bytes (plugins.files.${key})`, {
        details: { size_bytes: size, limit_bytes: limit },
      })
  }

  /**
   * Runs work that creates files. Throws `agent_not_found` and removes the folder again when the agent is killed during
   * it.
   */
  async #whileAlive<T>(agentId: string, work: () => Promise<T>): Promise<T> {
    const gone = async (): Promise<void> => {
      if (await this.#deps.agents.find(agentId)) return
      await this.#deps.folders.remove(agentId.toLowerCase())
      throw new Refusal('agent_not_found', `No agent ${agentId}`)
    }
    try {
      const result = await work()
      await gone()
      return result
    } catch (error) {
      await gone()
      throw error
    }
  }

  /** The root for a name. Throws `forbidden` for a name that leads out, whatever else is wrong with it. */
  async #root(agentId: string, name: string): Promise<string> {
    const root = await this.root(agentId)
    if (ESCAPE.test(name)) {
      enforced('path_traversal_prevention')
      throw new Refusal('forbidden', 'The name leads out of the workspace')
    }
    return root
  }
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

/** The stats of a file; `undefined` when it or its folder does not exist. */
async function statConfined(root: string, name: string): Promise<Stats | undefined> {
  const [folder, last] = splitName(name)
  try {
    await confine(root, name)
    return await inFolder(root, folder, (path) => lstat(join(path, last)))
  } catch (error) {
    return throwUnlessMissing(accessRefusal(name, error) ?? error)
  }
}
function throwUnlessMissing(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error
}
