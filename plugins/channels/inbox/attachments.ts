import { mediaTypeOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { imageTypes } from 'svc/providers'
import type { InboundAttachment } from 'svc/channels'
import type { Workspaces } from '../../files/contract.ts'
import type { SentImage } from '../../sessions/contract.ts'
import type { OpenConnection } from '../connections/connections.ts'

export interface AttachmentReaderDeps {
  readonly workspaces: () => Workspaces | undefined
  readonly settings: { readonly attachment_max_bytes: number; readonly max_attachments: number }
}
/** What a message carries beside its text: pictures for the model, and lines that name the files. */
export interface ReadAttachments {
  readonly images: readonly SentImage[]
  readonly notes: readonly string[]
}

const MAX_NAME_CHARS = 80

/** Stores the files of a message in the workspace of the agent. What cannot be read is named with the reason. */
export async function readAttachments(
  { workspaces, settings }: AttachmentReaderDeps,
  { connection, signal, adapter }: OpenConnection,
  {
    attachments,
    agentId,
    id,
  }: { readonly attachments: readonly InboundAttachment[]; readonly agentId: string; readonly id: string },
): Promise<ReadAttachments> {
  const images: SentImage[] = []
  const notes: string[] = []
  const files = workspaces()
  const limit = Math.min(settings.attachment_max_bytes, adapter.capabilities.attachments?.maxBytes ?? Infinity)
  for (const [index, attachment] of attachments.entries()) {
    const name = safeName(attachment.name, index)
    if (index >= settings.max_attachments) {
      notes.push(`[${attachments.length - index} more attached files were not read: too many]`)
      break
    }
    if (!connection.readAttachment || !files) {
      notes.push(`[Attached file ${name}: files cannot be read here]`)
      continue
    }
    const bytes = await readLimited(await connection.readAttachment(attachment.reference, signal), limit)
    if (!bytes) {
      notes.push(`[Attached file ${name}: not read, it is larger than ${limit} bytes]`)
      continue
    }
    const mime = await mediaTypeOf(bytes)
    const path = `uploads/${id}-${index}-${name}`
    await files.write(agentId, path, bytes)
    notes.push(`[Attached file: ${path}, ${mime}, ${bytes.length} bytes]`)
    if (imageTypes.has(mime)) images.push({ mime, filename: name, base64: Buffer.from(bytes).toString('base64') })
  }
  return { images, notes }
}

/** `undefined` for more than `limit` bytes. */
async function readLimited(content: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of content) {
    size += part.length
    if (size > limit) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** The name of a file as the sender gave it, without what a path or a prompt could misread. */
function safeName(name: string, index: number): string {
  const last = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
  const clean = last
    .replaceAll(/[^\p{L}\p{N}._-]+/gu, '_')
    .replace(/^[._]+/, '')
    .slice(-MAX_NAME_CHARS)
  return clean === '' ? `file-${index + 1}` : clean
}

/** Whether a failure to read a file passes by itself. */
export function isFinal(error: unknown): boolean {
  return error instanceof Refusal && error.code !== 'service_unavailable'
}
