import type { AttachmentInfo } from './message.ts'

/** The kind of a file by its media type. */
export function attachmentKind(mime: string): AttachmentInfo['kind'] {
  const [type] = mime.split('/', 1)
  return type === 'image' || type === 'audio' || type === 'video' ? type : 'file'
}
