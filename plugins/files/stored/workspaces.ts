import { checkFileName } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { WorkingFolder, WorkspaceFile, WorkspaceFiles } from '../contract.ts'
import { identityFiles } from '../identity-files.ts'
import { refuseEscape } from '../names.ts'
import type { SizeLimits } from '../size-limits.ts'
import type { FileStore } from './store.ts'
import { WorkingCopy } from './working-copy.ts'
import type { WorkingCopyDeps } from './working-copy.ts'

export interface StoredWorkspacesDeps {
  readonly agents: Agents
  readonly files: FileStore
  readonly sizes: SizeLimits
  /** As configured, for errors. */
  readonly mount: string
  /** Of the copies that programs get. */
  readonly copies: Pick<WorkingCopyDeps, 'base' | 'maxBytes' | 'maxFiles'>
}

/**
 * Workspaces in the database or a bucket, which every daemon on it reads and writes. There is no folder, so `root`,
 * `resolve` and `within` are refused; a program that ends gets a copy.
 */
export class StoredWorkspaces implements WorkspaceFiles {
  readonly isFolder = false
  readonly #deps: StoredWorkspacesDeps
  constructor(deps: StoredWorkspacesDeps) {
    this.#deps = deps
  }

  async root(): Promise<never> {
    throw noFolder(this.#deps.mount)
  }
  async resolve(): Promise<never> {
    throw noFolder(this.#deps.mount)
  }
  async within(): Promise<never> {
    throw noFolder(this.#deps.mount)
  }

  async open(agentId: string): Promise<WorkingFolder> {
    const id = await this.#open(agentId, undefined)
    const { copies, files, sizes } = this.#deps
    const copy = new WorkingCopy({ ...copies, files, sizes, refuseGone: () => this.#refuseGone(id) }, id)
    try {
      await copy.fill()
      return copy
    } catch (error) {
      await copy[Symbol.asyncDispose]()
      throw error
    }
  }

  async check(agentId: string, name: string): Promise<void> {
    await this.#deps.agents.require(agentId)
    refuseEscape(name)
    checkFileName(name)
  }
  checkSize(name: string, size: number): void {
    this.#deps.sizes.check(name, size)
  }

  async read(agentId: string, name: string, options: { readonly maxBytes?: number } = {}): Promise<Uint8Array> {
    const id = await this.#open(agentId, name)
    const { files, sizes } = this.#deps
    const limit = options.maxBytes ?? sizes.maxFileBytes
    const found = await files.read(id, name, limit)
    if (!found) {
      if ((await this.#below(id, name)).length > 0) throw new Refusal('invalid_request', `"${name}" is a folder`)
      throw new Refusal('file_not_found', `No file "${name}"`)
    }
    if (found.content !== null) return found.content
    throw new Refusal('payload_too_large', `"${name}" has ${found.size_bytes} bytes; at most ${limit} are read`, {
      details: { size_bytes: found.size_bytes, limit_bytes: limit },
    })
  }

  async write(agentId: string, name: string, content: string | Uint8Array): Promise<{ readonly created: boolean }> {
    const id = await this.#open(agentId, name)
    const bytes = Buffer.from(content)
    this.checkSize(name, bytes.byteLength)
    const { files } = this.#deps
    const names = new Set((await files.list(id)).map(({ path }) => path))
    const parts = name.split('/')
    const above = parts.map((_, depth) => parts.slice(0, depth).join('/')).find((folder) => names.has(folder))
    if (above !== undefined) throw new Refusal('forbidden', `"${name}" cannot be written: "${above}" is a file`)
    if ([...names].some((path) => path.startsWith(`${name}/`)))
      throw new Refusal('forbidden', `"${name}" cannot be written: it is a folder`)
    await files.put(id, { path: name, content: bytes }, new Date().toISOString())
    await this.#refuseGone(id)
    return { created: !names.has(name) }
  }

  async remove(agentId: string, name: string): Promise<boolean> {
    const id = await this.#open(agentId, name)
    if (await this.#deps.files.remove(id, name)) return true
    if ((await this.#below(id, name)).length > 0) throw new Refusal('invalid_request', `"${name}" is a folder`)
    return false
  }

  async list(agentId: string, folder?: string, limit = 1000): Promise<readonly WorkspaceFile[]> {
    const id = await this.#open(agentId, folder)
    const found = await this.#below(id, folder ?? '')
    if (found.length === 0 && folder !== undefined && folder !== '')
      throw new Refusal('file_not_found', `No folder "${folder}"`)
    return found
      .map(({ path, size_bytes: sizeBytes, modified_at: modifiedAt }) => ({ name: path, sizeBytes, modifiedAt }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .slice(0, limit)
  }

  /** A missing workspace is made with its identity files, those of the agent it was cloned from if there are any. */
  async make(agent: Agent): Promise<void> {
    const { files } = this.#deps
    if (await files.isMade(agent.id)) return
    const given = agent.manifest.generate_identity_files ? [...identityFiles] : []
    const first = given.map(async ([path, text]) => ({
      path,
      content: await this.#firstContent(agent, path, text),
    }))
    await files.make(agent.id, await Promise.all(first), new Date().toISOString())
    await this.#refuseGone(agent.id)
  }
  async removeAll(agentId: string): Promise<void> {
    await this.#deps.files.removeAll(agentId)
  }

  async #firstContent(agent: Agent, name: string, text: string): Promise<Uint8Array> {
    const { files, sizes } = this.#deps
    const source = agent.clonedFrom
    const found = source === undefined ? undefined : await files.read(source, name, sizes.maxIdentityBytes)
    return found?.content ?? Buffer.from(text)
  }
  async #below(agentId: string, folder: string) {
    const rows = await this.#deps.files.list(agentId)
    return folder === '' ? rows : rows.filter(({ path }) => path.startsWith(`${folder}/`))
  }
  /** The id of the agent, whose workspace is there then. */
  async #open(agentId: string, name: string | undefined): Promise<string> {
    const agent = await this.#deps.agents.require(agentId)
    if (name !== undefined && name !== '') await this.check(agentId, name)
    await this.make(agent)
    return agent.id
  }
  /** Killed while it was written: nothing would remove it later. */
  async #refuseGone(agentId: string): Promise<void> {
    if (await this.#deps.agents.find(agentId)) return
    await this.removeAll(agentId)
    throw new Refusal('agent_not_found', `No agent ${agentId}`)
  }
}

function noFolder(mount: string): Refusal {
  return new Refusal(
    'conflict',
    'This needs a folder of this machine that stays, and the workspaces of this daemon are elsewhere ' +
      `(plugins.files.mount = "${mount}"): run a program that ends with shell_exec, which gets a copy of the files, or ` +
      'let the operator set plugins.files.mount = "folder", with plugins.files.path for several daemons',
  )
}
