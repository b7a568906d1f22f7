import { randomUUID } from 'node:crypto'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Upload, Uploads, WorkspaceFiles } from './contract.ts'
import type { UploadRow } from './schema.ts'
import type { UploadStore } from './store.ts'

export interface UploadServiceDeps {
  readonly agents: Agents
  readonly audit: Audit
  readonly store: UploadStore
  readonly workspaces: WorkspaceFiles
  readonly maxBytes: number
}
/** Files uploaded for an agent. Each has its own folder in the workspace, so that none replaces another. */
export class UploadService implements Uploads {
  readonly #deps: UploadServiceDeps
  constructor(deps: UploadServiceDeps) {
    this.#deps = deps
  }

  row(id: string): Promise<UploadRow | undefined> {
    return this.#deps.store.find(id)
  }
  async find(fileId: string): Promise<Upload | undefined> {
    const row = await this.row(fileId.toLowerCase())
    return (
      row && {
        id: row.id,
        agentId: row.agent_id,
        filename: row.filename,
        path: row.path,
        contentType: row.content_type,
        sizeBytes: row.size_bytes,
      }
    )
  }
  async read(upload: Upload): Promise<Uint8Array> {
    // The agent may have made it larger in between.
    return this.#deps.workspaces.read(upload.agentId, upload.path, {
      maxBytes: Math.max(this.#deps.maxBytes, upload.sizeBytes),
    })
  }

  /**
   * Stores one file out of a form, or the whole body when `filename` is given. `id` is given by a caller who may have
   * to repeat the request. Throws `invalid_request` and `payload_too_large`.
   */
  async add(
    agentId: string,
    body: Uint8Array,
    contentType: string | undefined,
    filename: string | undefined,
    id: string = randomUUID(),
  ): Promise<UploadRow> {
    const { addUpload } = await import('./add-upload.ts')
    return addUpload(this.#deps, { agentId, body, contentType, filename, id })
  }

  clear(agentId: string): Promise<void> {
    return this.#deps.store.clear(agentId)
  }
  /** Forgets uploads whose agent was killed just before the process ended. */
  async sweep(): Promise<void> {
    for (const agentId of await this.#deps.store.agents())
      if (!(await this.#deps.agents.find(agentId))) await this.clear(agentId)
  }
}
