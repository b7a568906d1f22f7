import { mkdir, readdir, realpath, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { confine, openConfined, Refusal, replaceConfined } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { WorkspaceFile, Workspaces } from './contract.ts'

export interface WorkspaceParts {
  readonly agents: Agents
  /** Holds one folder for each agent. Absolute. */
  readonly folder: string
  readonly maxFileBytes: number
}

export class WorkspaceService implements Workspaces {
  readonly #parts: WorkspaceParts
  constructor(parts: WorkspaceParts) { this.#parts = parts }

  async root(agentId: string): Promise<string> {
    const { id } = await this.#parts.agents.require(agentId)
    const path = join(this.#parts.folder, id)
    await mkdir(path, { recursive: true, mode: 0o700 })
    return realpath(path)
  }

  async resolve(agentId: string, name: string): Promise<string> { return confine(await this.root(agentId), name) }

  async read(agentId: string, name: string, options: { readonly maxBytes?: number } = {}): Promise<Uint8Array> {
    const root = await this.root(agentId)
    const limit = options.maxBytes ?? this.#parts.maxFileBytes
    let handle
    try { handle = await openConfined(root, name, 'read') } catch (error) {
      if (isMissing(error)) throw new Refusal('file_not_found', `No file "${name}"`, { cause: error })
      throw error
    }
    try {
      const { size } = await handle.stat()
      if (size > limit) throw new Refusal('payload_too_large', `"${name}" has ${size} bytes; at most ${limit} are read`, { details: { size_bytes: size, limit_bytes: limit } })
      return await handle.readFile()
    } finally { await handle.close() }
  }

  async write(agentId: string, name: string, content: string | Uint8Array): Promise<{ readonly created: boolean }> {
    const limit = this.#parts.maxFileBytes
    const size = Buffer.byteLength(content)
    if (size > limit) throw new Refusal('payload_too_large', `"${name}": at most ${limit} bytes`, { details: { size_bytes: size, limit_bytes: limit } })
    return replaceConfined(await this.root(agentId), name, content)
  }

  async remove(agentId: string, name: string): Promise<boolean> {
    const path = await confine(await this.root(agentId), name)
    const found = await stat(path).catch((error: unknown) => { if (isMissing(error)) return undefined; throw error })
    if (!found) return false
    if (!found.isFile()) throw new Refusal('invalid_request', `"${name}" is a folder`)
    await rm(path)
    return true
  }

  async list(agentId: string, folder?: string, limit = 1000): Promise<readonly WorkspaceFile[]> {
    const root = await this.root(agentId)
    const found: WorkspaceFile[] = []
    const waiting = [folder ?? '']
    while (waiting.length > 0 && found.length < limit) {
      const at = waiting.shift() ?? ''
      const path = at === '' ? root : await confine(root, at)
      const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
        if (isMissing(error)) throw new Refusal('file_not_found', `No folder "${at}"`, { cause: error })
        throw error
      })
      for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
        const name = at === '' ? entry.name : `${at}/${entry.name}`
        if (entry.isDirectory()) waiting.push(name)
        if (!entry.isFile() || found.length >= limit) continue
        const facts = await stat(join(path, entry.name)).catch((error: unknown) => { if (isMissing(error)) return undefined; throw error })
        if (facts && facts.nlink === 1) found.push({ name, sizeBytes: facts.size, modifiedAt: facts.mtime.toISOString() })
      }
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1))
  }
}

const isMissing = (error: unknown): boolean => error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
