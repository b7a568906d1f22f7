import { Refusal } from 'svc/sdk'
import type { Uploads } from '../../files/contract.ts'
import type { SentImage } from '../../sessions/contract.ts'
import type { TurnRequest } from '../contract.ts'
import { screenOutside } from '../safety/screening.ts'
import type { OutsideScreening } from '../safety/screening.ts'
import { imageTypes } from 'svc/providers'

export type Attachments = readonly { readonly file_id: string }[]
export interface AttachmentRules {
  readonly screening: OutsideScreening
  /** Characters of one attached text file that are quoted. */
  readonly maxChars: number
}

/**
 * A message with its attachments: images go to the model, text is quoted, and every file is named with its path in the
 * workspace, where the agent's tools find it. Throws `file_not_found` for a file that was not uploaded for this agent.
 */
export async function withAttachments(
  uploads: Uploads | undefined,
  agentId: string,
  text: string,
  attachments: Attachments,
  { screening, maxChars }: AttachmentRules,
): Promise<Pick<TurnRequest, 'text' | 'images'>> {
  if (!uploads)
    throw new Refusal('service_unavailable', 'Attachments are not available: the plugin that keeps files is not loaded')
  const images: SentImage[] = []
  const notes: string[] = []
  for (const { file_id: id } of attachments) {
    const upload = await uploads.find(id)
    if (!upload || upload.agentId !== agentId) throw new Refusal('file_not_found', `No upload ${id} of this agent`)
    const { contentType, filename, path, sizeBytes } = upload
    const note = `[Attached file: ${path}, ${contentType}, ${sizeBytes} bytes]`
    if (imageTypes.has(contentType)) {
      const base64 = Buffer.from(await uploads.read(upload)).toString('base64')
      images.push({ mime: contentType, fileId: id, filename, base64 })
      notes.push(note)
    } else if (isText(contentType)) {
      const quoted = quote(Buffer.from(await uploads.read(upload)).toString('utf8'), maxChars)
      notes.push(`${note}\n${(await screenOutside(`the file ${path}`, quoted, screening)).text}`)
    } else
      notes.push(
        `${note.slice(0, -1)}. What it holds is not part of this message: ` +
          'the file is in your workspace, under that path.]',
      )
  }
  return { text: [text, ...notes].join('\n\n'), ...(images.length > 0 ? { images } : {}) }
}

const isText = (type: string): boolean => type.startsWith('text/') || type === 'application/json'
function quote(text: string, maxChars: number): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}\n[cut: the rest is in the file]` : text
}
