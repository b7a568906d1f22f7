import { hash } from 'node:crypto'
import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import type { OutboundAttachment } from 'svc/channels'
import type { Chat } from './chat.ts'

const MessageKind = { text: 0, typing: 6, media: 7 } as const
const FileKind = { image: 1, video: 2, voice: 3, file: 4 } as const
const FILE_KINDS: Readonly<Record<string, number>> = {
  'image/png': FileKind.image,
  'image/jpeg': FileKind.image,
  'video/mp4': FileKind.video,
  'audio/silk': FileKind.voice,
}
/** Splits what QQ would show as a mention, and notify people of. */
const BREAK = '\u200b'
/** Numbers of replies have 16 bits in the SDK of QQ. */
const MAX_SEQ = 65_535

/** What a message answers: without it QQ takes few messages or none. */
export interface Answered {
  readonly id: string
  readonly seq: number
}

/** The number of a reply: the same for the same message, so that QQ shows it once. */
export function seqOf(key: string): number {
  return 1 + (Number.parseInt(hash('sha256', key).slice(0, 8), 16) % MAX_SEQ)
}
/** The next number, for one that another message has. */
export const nextSeq = (seq: number): number => 1 + (seq % MAX_SEQ)

/** The body of a message. A server finds its replies by the message alone. */
export function encodeText(
  chat: Chat,
  text: string,
  answered: Answered | undefined,
): Readonly<Record<string, unknown>> {
  const content = encodeContent(chat, text)
  if (chat.isOfServer) return omitUndefined({ content, msg_id: answered?.id })
  return omitUndefined({ content, msg_type: MessageKind.text, msg_id: answered?.id, msg_seq: answered?.seq })
}

/** A file that was uploaded. QQ refuses it without any text. */
export function encodeMedia(text: string, fileInfo: string, answered: Answered | undefined) {
  return omitUndefined({
    content: text === '' ? ' ' : text,
    msg_type: MessageKind.media,
    media: { file_info: fileInfo },
    msg_id: answered?.id,
    msg_seq: answered?.seq,
  })
}

export function encodeTyping(seconds: number, { id, seq }: Answered) {
  const notify = { input_type: 1, input_second: seconds }
  return { msg_type: MessageKind.typing, input_notify: notify, msg_id: id, msg_seq: seq }
}

/** A picture for a channel of a server, with its text. */
export async function encodePicture(chat: Chat, text: string, file: OutboundAttachment, answered?: Answered) {
  if (FILE_KINDS[file.mime] !== FileKind.image)
    throw new UpstreamFailure('qq', `qq takes no files but PNG and JPEG pictures here: ${file.name} was not sent`, {
      reason: 'invalid_request',
      retry: 'never',
    })
  const form = new FormData()
  if (text !== '') form.set('content', encodeContent(chat, text))
  if (answered) form.set('msg_id', answered.id)
  form.set('file_image', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
  return form
}

/** The body of an upload. */
export async function encodeUpload(file: OutboundAttachment) {
  const type = FILE_KINDS[file.mime] ?? FileKind.file
  return omitUndefined({
    file_type: type,
    file_data: Buffer.from(await file.bytes()).toString('base64'),
    // It is sent with a message, not by itself.
    srv_send_msg: false,
    file_name: type === FileKind.file ? file.name : undefined,
  })
}

/** Whether a file can be shown in one message with a text. */
export const isPicture = ({ mime }: OutboundAttachment): boolean => FILE_KINDS[mime] === FileKind.image

/** Nobody is notified by what an agent writes. In servers QQ decodes the signs of its markup. */
export function encodeContent(chat: Chat, text: string): string {
  if (!chat.isOfServer) return text.replaceAll(/<(?=@|#|qqbot-)/g, `<${BREAK}`)
  return text
    .replaceAll('@everyone', `@${BREAK}everyone`)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
}
