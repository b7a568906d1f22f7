import type { Stats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { confine, inFolder, openConfined, removeConfined, replaceConfined, splitName } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { WorkingFolder, WorkspaceFile, WorkspaceFiles } from './contract.ts'
import { accessRefusal, diskRefusal, hasCode } from './disk.ts'
import type { Folders } from './folders.ts'
import { refuseEscape } from './names.ts'
import type { SizeLimits } from './size-limits.ts'

export interface WorkspaceDeps {
  readonly agents: Agents
  readonly folders: Folders
  readonly sizes: SizeLimits
}

export class WorkspaceService implements WorkspaceFiles {
  readonly isFolder = true
  readonly #deps: WorkspaceDeps
  constructor(deps: WorkspaceDeps) {
    this.#deps = deps
  }

  async root(agentId: string): Promise<string> {
    const agent = await this.#deps.agents.require(agentId)
    return this.#whileAlive(agent.id, () => this.#deps.folders.open(agent))
  }
  async open(agentId: string): Promise<WorkingFolder> {
    const path = await this.root(agentId)
    return { path, save: async () => undefined, [Symbol.asyncDispose]: async () => undefined }
  }
  async resolve(agentId: string, name: string): Promise<string> {
    return confine(await this.#root(agentId, name), name)
  }
  async check(agentId: string, name: string): Promise<void> {
    await this.resolve(agentId, name)
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
    const limit = options.maxBytes ?? this.#deps.sizes.maxFileBytes
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
    const { listFiles } = await import('./folder-list.ts')
    return listFiles(root, folder, limit)
  }

  checkSize(name: string, size: number): void {
    this.#deps.sizes.check(name, size)
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
      // What was done below a mount point while the folder went away is not there when it is back.
      await this.#deps.folders.checkMounted()
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
    refuseEscape(name)
    return root
  }
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
