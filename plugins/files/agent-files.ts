import { isUtf8 } from 'node:buffer'
import { Refusal } from 'svc/sdk'
import type { Recovery, ToolCallContext } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { ChangeLog } from './changes/change-log.ts'
import type { WorkspaceFiles } from './contract.ts'

/** The workspace as the tools of an agent name its files. */
export class AgentFiles {
  readonly workspaces: WorkspaceFiles
  readonly changes: () => Promise<ChangeLog>
  readonly #audit: Audit
  constructor(workspaces: WorkspaceFiles, changes: () => Promise<ChangeLog>, audit: Audit) {
    this.workspaces = workspaces
    this.changes = changes
    this.#audit = audit
  }

  /**
   * Models write `./a` and, once they know where they are, the absolute path. Returns an empty text for the workspace
   * itself.
   */
  async nameIn(agentId: string, name: string): Promise<string> {
    const root = this.workspaces.isFolder ? await this.workspaces.root(agentId) : undefined
    const isInside = root !== undefined && (name === root || name.startsWith(`${root}/`))
    const inside = isInside ? name.slice(root.length).replace(/^\//, '') : name === '/' ? '' : name
    const plain = inside.replace(/^(\.\/)+/, '').replace(/\/+$/, '')
    return plain === '.' ? '' : plain
  }
  /** Throws `invalid_request` for the workspace itself. */
  async fileIn(agentId: string, name: string): Promise<string> {
    const file = await this.nameIn(agentId, name)
    if (file === '') throw new Refusal('invalid_request', 'path: names the workspace itself; name a file in it')
    return file
  }
  /** Throws `invalid_request` for a file that is no text. */
  async readText(agentId: string, name: string): Promise<string> {
    const bytes = await this.workspaces.read(agentId, name)
    if (!isUtf8(bytes) || bytes.includes(0))
      throw new Refusal('invalid_request', `"${name}" is not a text file (${bytes.byteLength} bytes)`)
    return new TextDecoder().decode(bytes)
  }
  recordChange(agentId: string, details: string): Promise<void> {
    return this.#audit.write({ event: 'file_access', agentId, details })
  }
  async recover(call: ToolCallContext): Promise<Recovery> {
    const { recoverChange } = await import('./changes/change-log.ts')
    return recoverChange(await this.changes(), (details) => this.recordChange(call.agentId, details), call)
  }
  async write(call: ToolCallContext, path: string, content: string): Promise<string> {
    const { agentId } = call
    const name = await this.fileIn(agentId, path)
    await (await this.changes()).intend(call, [{ path: name, after: content }])
    const { created } = await this.workspaces.write(agentId, name, content)
    const bytes = Buffer.byteLength(content)
    await this.recordChange(agentId, `${created ? 'created' : 'replaced'} "${name}" (${bytes} bytes)`)
    return `${created ? 'Created' : 'Replaced'} "${name}".`
  }
  async createFolder(agentId: string, path: string): Promise<string> {
    return (await import('./create-folder.ts')).createFolder(this, agentId, path)
  }
}
