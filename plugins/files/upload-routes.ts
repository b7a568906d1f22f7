import * as v from 'valibot'
import { defineRoute, rawBody, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import { Uploaded, UploadParams } from './schema.ts'
import type { UploadRow } from './schema.ts'
import type { UploadService } from './uploads.ts'

export function uploadRoutes(uploads: () => Promise<UploadService>, maxBytes: number): readonly AnyRoute[] {
  const add = defineRoute({
    method: 'POST',
    path: '/api/agents/:id/upload',
    summary: 'Send a file for an agent',
    description:
      '`multipart/form-data` with one file, or its bytes with the header `X-Filename`. Any type is taken; ' +
      '`content_type` is what its bytes are. It is stored in the workspace under `path`.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 10,
    params: AgentParams,
    body: { ...rawBody(maxBytes + 65_536), form: 'file' },
    returns: Uploaded,
    status: 201,
    errors: ['agent_not_found', 'payload_too_large'],
    idempotent: true,
    async recall(id) {
      const row = await (await uploads()).row(id)
      return row && toUploaded(row)
    },
    async handle({ params, body, header, effectId }) {
      return toUploaded(
        await (await uploads()).add(params.id, body, header('content-type'), header('x-filename'), effectId),
      )
    },
  })
  const read = defineRoute({
    method: 'GET',
    path: '/api/uploads/:file_id',
    summary: 'Download a file that was sent for an agent',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: UploadParams,
    returns: v.string(),
    produces: '*/*',
    errors: ['file_not_found', 'payload_too_large'],
    async handle({ params }) {
      const upload = await (await uploads()).find(params.file_id)
      if (!upload) throw new Refusal('file_not_found', `No file ${params.file_id}`)
      const { asFile } = await import('./media-type.ts')
      return asFile(await (await uploads()).read(upload), upload.contentType, upload.filename)
    },
  })
  return [add, read]
}

function toUploaded(row: UploadRow): v.InferOutput<typeof Uploaded> {
  return {
    file_id: row.id,
    filename: row.filename,
    content_type: row.content_type,
    size: row.size_bytes,
    path: row.path,
  }
}
