import { mediaTypeOf } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import { imageTypes } from 'svc/providers'
import type { InboundAttachment } from 'svc/channels'
import type { Workspaces } from '../../files/contract.ts'
import type { SentImage } from '../../sessions/contract.ts'
import type { OpenConnection } from '../connections/connections.ts'
import { plainFileReason } from './plain-words.ts'

export interface AttachmentReaderDeps {
  readonly workspaces: () => Workspaces | undefined
  readonly settings: { readonly attachment_max_bytes: number; readonly max_attachments: number }
}
/** What a message carries beside its text: pictures for the model, and lines that name the files. */
export interface ReadAttachments {
  readonly images: readonly SentImage[]
  readonly notes: readonly string[]
  /** Files that the agent did not get, each with the reason, for the sender. */
  readonly unread: readonly string[]
}
export interface AttachmentRequest {
  readonly attachments: readonly InboundAttachment[]
  readonly agentId: string
  /** Of the message. */
  readonly id: string
  /** Another attempt follows a failure that may pass. */
  readonly mayRetry: boolean
  /** Told of a file that is left out. */
  readonly failed: (name: string, error: unknown) => void
}

const MAX_NAME_CHARS = 80

/**
 * Stores the files of a message in the workspace of the agent. One that cannot be read is named with the reason, and
 * takes none of the others with it. Rejects with a failure that may pass while another attempt follows.
 */
export async function readAttachments(
  deps: AttachmentReaderDeps,
  open: OpenConnection,
  request: AttachmentRequest,
): Promise<ReadAttachments> {
  const { attachments, mayRetry, failed } = request
  const { max_attachments: maxFiles } = deps.settings
  const images: SentImage[] = []
  const notes: string[] = []
  const unread: string[] = []
  for (const [index, attachment] of attachments.slice(0, maxFiles).entries()) {
    const name = safeName(attachment.name, index)
    try {
      const { path, mime, bytes } = await storeFile(deps, open, { ...request, index, name })
      notes.push(`[Attached file: ${path}, ${mime}, ${bytes.length} bytes]`)
      if (imageTypes.has(mime)) images.push({ mime, filename: name, base64: Buffer.from(bytes).toString('base64') })
    } catch (error) {
      if (open.signal.aborted || (mayRetry && !isFinal(error))) throw error
      failed(name, error)
      const reason = plainFileReason(error)
      notes.push(`[Attached file ${name}: not read, ${reason}]`)
      unread.push(`${name}: ${reason}`)
    }
  }
  const beyond = attachments.length - maxFiles
  if (beyond > 0) {
    notes.push(`[${beyond} more attached files were not read: too many]`)
    unread.push(`${beyond} more: at most ${maxFiles} files of a message are read`)
  }
  return { images, notes, unread }
}

async function storeFile(
  { workspaces, settings }: AttachmentReaderDeps,
  { connection, signal, adapter }: OpenConnection,
  { attachments, agentId, id, index, name }: AttachmentRequest & { readonly index: number; readonly name: string },
): Promise<{ readonly path: string; readonly mime: string; readonly bytes: Uint8Array }> {
  const files = workspaces()
  const attachment = attachments[index]
  if (!connection.readAttachment || !files || !attachment) throw new Refusal('conflict', 'files cannot be read here')
  const limit = Math.min(settings.attachment_max_bytes, adapter.capabilities.attachments?.maxBytes ?? Infinity)
  const bytes = await readLimited(await connection.readAttachment(attachment.reference, signal), limit)
  if (!bytes) throw new Refusal('payload_too_large', `it is larger than ${limit} bytes`)
  const mime = await mediaTypeOf(bytes)
  const path = `uploads/${id}-${index}-${name}`
  await files.write(agentId, path, bytes)
  return { path, mime, bytes }
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

/** Whether a failure to read a file does not pass by itself. */
function isFinal(error: unknown): boolean {
  if (error instanceof UpstreamFailure) return error.retry === 'never'
  return error instanceof Refusal && error.code !== 'service_unavailable'
}
