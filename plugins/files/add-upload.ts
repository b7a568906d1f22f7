import { Refusal } from 'svc/sdk'
import { safeName, storedType } from './media-type.ts'
import type { UploadRow } from './schema.ts'
import type { UploadServiceDeps } from './uploads.ts'

export interface NewUpload {
  readonly agentId: string
  readonly body: Uint8Array
  readonly contentType: string | undefined
  /** Of the whole body; otherwise the file is in the form. */
  readonly filename: string | undefined
  readonly id: string
}
interface UploadedFile {
  readonly filename: string
  readonly type: string | undefined
  readonly content: Uint8Array
}

/** See `UploadService.add`. */
export async function addUpload(
  deps: UploadServiceDeps,
  { agentId, body, contentType, filename, id }: NewUpload,
): Promise<UploadRow> {
  const { agents, store, audit, workspaces, maxBytes } = deps
  const { id: agent } = await agents.require(agentId)
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
  if (!(await agents.find(agent))) {
    await store.clear(agent)
    throw new Refusal('agent_not_found', `No agent ${agent}`)
  }
  return row
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
