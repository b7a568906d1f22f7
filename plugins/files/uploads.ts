import { randomUUID } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Upload, Uploads, WorkspaceFiles } from './contract.ts'
import { safeName, storedType } from './media-type.ts'
import type { UploadRow } from './schema.ts'
import type { UploadStore } from './store.ts'

export interface UploadServiceDeps {
  readonly agents: Agents
  readonly audit: Audit
  readonly store: UploadStore
  readonly workspaces: WorkspaceFiles
  readonly maxBytes: number
}
interface UploadedFile {
  readonly filename: string
  readonly type: string | undefined
  readonly content: Uint8Array
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
    const { id: agent } = await this.#deps.agents.require(agentId)
    const { store, audit, workspaces, maxBytes } = this.#deps
    const file = await fileOf(body, contentType, filename, maxBytes)
    if (file.content.byteLength > maxBytes)
      throw new Refusal('payload_too_large', `file: at most ${maxBytes} bytes (plugins.files.max_upload_bytes)`, {
        details: { limit_bytes: maxBytes },
      })
    if (file.content.byteLength === 0) throw new Refusal('invalid_request', 'file: is empty')
    const type = await storedType(file.content, file.type, file.filename)
    if (type === undefined)
      throw new Refusal(
        'invalid_request',
        `file: it is sent as ${(file.type ?? '').slice(0, 100)}, and its bytes are no picture; ` +
          'send its real type, or application/octet-stream',
      )
    const name = safeName(file.filename)
    const row: UploadRow = {
      id,
      agent_id: agent,
      filename: name,
      path: `uploads/${id}/${name}`,
      content_type: type,
      size_bytes: file.content.byteLength,
      created_at: new Date().toISOString(),
    }
    await workspaces.write(agent, row.path, file.content)
    try {
      await store.commit(
        store.insert(row),
        audit.entry({
          event: 'file_access',
          agentId: agent,
          details: `upload "${row.path}" (${row.size_bytes} bytes, ${type})`,
        }),
      )
    } catch (error) {
      await workspaces.remove(agent, row.path)
      throw error
    }
    // Killed while it was written: nothing would remove it later.
    if (!(await this.#deps.agents.find(agent))) {
      await this.clear(agent)
      throw new Refusal('agent_not_found', `No agent ${agent}`)
    }
    return row
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

async function fileOf(
  body: Uint8Array,
  contentType: string | undefined,
  filename: string | undefined,
  maxBytes: number,
): Promise<UploadedFile> {
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType ?? '')) {
    if (filename !== undefined) return { filename: decoded(filename), type: contentType, content: body }
    throw new Refusal(
      'invalid_request',
      'file: send multipart/form-data with a file, or the bytes with the header X-Filename',
    )
  }
  const { readFormFiles } = await import('./form-data.ts')
  const [file, ...others] = await readFormFiles(body, contentType ?? '', maxBytes)
  if (!file) throw new Refusal('invalid_request', 'file: the form has no file')
  if (others.length > 0) throw new Refusal('invalid_request', 'file: send one file per request')
  return file
}

/** Header values are ASCII, so a name in other letters comes percent-encoded. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
