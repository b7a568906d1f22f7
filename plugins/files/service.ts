import type { Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { confine, enforced, inFolder, openConfined, removeConfined, replaceConfined, splitName } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { WorkspaceFile, Workspaces } from './contract.ts'
import { identityFiles } from './identity-files.ts'
import { diskRefusal, hasCode } from './disk.ts'
import type { Folders } from './folders.ts'

export interface WorkspaceParts {
  readonly agents: Agents
  readonly folders: Folders
  readonly maxFileBytes: number
  readonly maxUploadBytes: number
}

/** Left by a write that a crash cut short. */
const PART = /(^|\/)\.[0-9a-f-]{36}\.part$/
const ESCAPE = /^[/~\\]|^[a-z]:|(^|[\\/])\.\.([\\/]|$)/i

export class WorkspaceService implements Workspaces {
  readonly #parts: WorkspaceParts
  constructor(parts: WorkspaceParts) {
    this.#parts = parts
  }

  async root(agentId: string): Promise<string> {
    const agent = await this.#parts.agents.require(agentId)
    return this.#while(agent.id, () => this.#parts.folders.open(agent))
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
    return this.#while(agentId, () => inFolder(root, folder, work, options))
  }

  async read(agentId: string, name: string, options: { readonly maxBytes?: number } = {}): Promise<Uint8Array> {
    const root = await this.#root(agentId, name)
    const limit = options.maxBytes ?? this.#parts.maxFileBytes
    const found = await lookAt(root, name)
    if (found?.isDirectory()) throw new Refusal('invalid_request', `"${name}" is a folder`)
    const handle = found && (await openConfined(root, name, 'read').catch(unlessMissing))
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
    return this.#while(agentId, async () => {
      try {
        return await replaceConfined(root, name, content)
      } catch (error) {
        throw diskRefusal(error) ?? error
      }
    })
  }

  async remove(agentId: string, name: string): Promise<boolean> {
    const root = await this.#root(agentId, name)
    const found = await lookAt(root, name)
    if (!found) return false
    if (!found.isFile()) throw new Refusal('invalid_request', `"${name}" is a folder`)
    return removeConfined(root, name)
  }

  async list(agentId: string, folder?: string, limit = 1000): Promise<readonly WorkspaceFile[]> {
    const root = folder === undefined ? await this.root(agentId) : await this.#root(agentId, folder)
    const found: WorkspaceFile[] = []
    const waiting = [folder ?? '']
    while (waiting.length > 0 && found.length < limit) {
      const at = waiting.shift() ?? ''
      const isThere = await inFolder(root, at, async (path) => {
        const entries = await readdir(path, { withFileTypes: true })
        for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
          const name = at === '' ? entry.name : `${at}/${entry.name}`
          if (entry.isDirectory()) waiting.push(name)
          if (!entry.isFile() || PART.test(name) || found.length >= limit) continue
          const facts = await lstat(join(path, entry.name)).catch(unlessMissing)
          if (facts?.isFile() && facts.nlink === 1)
            found.push({ name, sizeBytes: facts.size, modifiedAt: facts.mtime.toISOString() })
        }
        return true
      }).catch((error: unknown) => {
        // Below what was asked for, a folder may be removed or become a link meanwhile.
        if (at !== (folder ?? '') && error instanceof Refusal) return undefined
        return unlessMissing(error)
      })
      if (isThere === undefined && at === folder) throw new Refusal('file_not_found', `No folder "${at}"`)
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Throws `payload_too_large`. */
  checkSize(name: string, size: number): void {
    const {
      folders: { identityBytes },
      maxFileBytes,
      maxUploadBytes,
    } = this.#parts
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

  /** Work that makes files. An agent killed meanwhile is `agent_not_found`, and what came to be after its folder went goes too. */
  async #while<T>(agentId: string, work: () => Promise<T>): Promise<T> {
    const gone = async (): Promise<void> => {
      if (await this.#parts.agents.find(agentId)) return
      await this.#parts.folders.remove(agentId.toLowerCase())
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

  /** The root for a name. One that leads out is refused as such, whatever else is wrong with it. */
  async #root(agentId: string, name: string): Promise<string> {
    const root = await this.root(agentId)
    if (ESCAPE.test(name)) {
      enforced('path_traversal_prevention')
      throw new Refusal('forbidden', 'The name leads out of the workspace')
    }
    return root
  }
}

/** What is there under a name; `undefined` also when the whole folder went away meanwhile. */
async function lookAt(root: string, name: string): Promise<Stats | undefined> {
  const [folder, last] = splitName(name)
  try {
    await confine(root, name)
    return await inFolder(root, folder, (path) => lstat(join(path, last)))
  } catch (error) {
    return unlessMissing(error)
  }
}
function unlessMissing(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw error
}
