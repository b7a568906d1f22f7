import { randomUUID } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Upload, Uploads } from './contract.ts'
import { readMultipart } from './multipart.ts'
import { safeName, storedType } from './media-type.ts'
import type { UploadRow } from './schema.ts'
import type { WorkspaceService } from './service.ts'
import type { UploadStore } from './store.ts'

export interface UploadParts {
  readonly agents: Agents
  readonly audit: Audit
  readonly store: UploadStore
  readonly workspaces: WorkspaceService
  readonly maxBytes: number
}
interface Given {
  readonly filename: string
  readonly type: string | undefined
  readonly content: Uint8Array
}

/** Files sent for an agent. Each stands in a folder of its own in the workspace, so that none takes the place of another. */
export class UploadService implements Uploads {
  readonly #parts: UploadParts
  constructor(parts: UploadParts) {
    this.#parts = parts
  }

  row(id: string): Promise<UploadRow | undefined> {
    return this.#parts.store.find(id)
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
    // The agent may have made it larger meanwhile.
    return this.#parts.workspaces.read(upload.agentId, upload.path, {
      maxBytes: Math.max(this.#parts.maxBytes, upload.sizeBytes),
    })
  }

  /** One file out of a form, or the whole body when `filename` is given. `id` is given by a caller who may have to repeat the request. Throws `invalid_request` and `payload_too_large`. */
  async add(
    agentId: string,
    body: Uint8Array,
    contentType: string | undefined,
    filename: string | undefined,
    id: string = randomUUID(),
  ): Promise<UploadRow> {
    const { id: agent } = await this.#parts.agents.require(agentId)
    const { store, audit, workspaces, maxBytes } = this.#parts
    const given = fileOf(body, contentType, filename)
    if (given.content.byteLength > maxBytes)
      throw new Refusal('payload_too_large', `file: at most ${maxBytes} bytes (plugins.files.max_upload_bytes)`, {
        details: { limit_bytes: maxBytes },
      })
    if (given.content.byteLength === 0) throw new Refusal('invalid_request', 'file: is empty')
    const type = await storedType(given.content, given.type, given.filename)
    if (type === undefined)
      throw new Refusal(
        'invalid_request',
        `file: it is sent as ${(given.type ?? '').slice(0, 100)}, and its bytes are no picture; send what it is, or application/octet-stream`,
      )
    const name = safeName(given.filename)
    const row: UploadRow = {
      id,
      agent_id: agent,
      filename: name,
      path: `uploads/${id}/${name}`,
      content_type: type,
      size_bytes: given.content.byteLength,
      created_at: new Date().toISOString(),
    }
    await workspaces.write(agent, row.path, given.content)
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
    // Killed while it was written: nobody would forget it any more.
    if (!(await this.#parts.agents.find(agent))) {
      await this.clear(agent)
      throw new Refusal('agent_not_found', `No agent ${agent}`)
    }
    return row
  }

  clear(agentId: string): Promise<void> {
    return this.#parts.store.clear(agentId)
  }
  /** Forgets uploads whose agent was killed just before the process ended. */
  async sweep(): Promise<void> {
    for (const agentId of await this.#parts.store.agents())
      if (!(await this.#parts.agents.find(agentId))) await this.clear(agentId)
  }
}

function fileOf(body: Uint8Array, contentType: string | undefined, filename: string | undefined): Given {
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType ?? '')) {
    if (filename !== undefined) return { filename: decoded(filename), type: contentType, content: body }
    throw new Refusal(
      'invalid_request',
      'file: send multipart/form-data with a file, or the bytes with the header X-Filename',
    )
  }
  const files = readMultipart(body, contentType ?? '').filter((part) => part.filename !== undefined)
  const [file] = files
  if (!file) throw new Refusal('invalid_request', 'file: there is no file in the form')
  if (files.length > 1) throw new Refusal('invalid_request', 'file: one file for each request')
  return { filename: file.filename ?? '', type: file.type, content: file.content }
}

/** Header values are ASCII, so a name in other letters comes percent-encoded. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
