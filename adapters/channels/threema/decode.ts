import * as v from 'valibot'
import { omitUndefined, readJson } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { File, TYPE } from './wire.ts'
import type { Callback, Content } from './wire.ts'

/** How apps write a reply: the id of the message it answers. */
const QUOTE = /^> quote #([0-9a-f]{16})(?:\r?\n){2}/
const MAX_COORDINATES = 100

/** The message of a person; `undefined` for kinds without a content, such as receipts. */
export function decodeMessage(callback: Callback, content: Content): InboundMessage | undefined {
  const read = readContent(content)
  if (!read || (read.text === '' && read.attachments.length === 0)) return undefined
  const { from, messageId, date, nickname = '' } = callback
  return omitUndefined({
    id: messageId.toLowerCase(),
    chat: { id: from, kind: 'direct' as const },
    // A name of the person's own choice.
    sender: { id: from, name: nickname.trim() || from },
    text: read.text,
    attachments: read.attachments,
    mentionsBot: true,
    replyTo: read.replyTo,
    sentAt: isoTime(Number(date) * 1000),
  })
}

interface Read {
  readonly text: string
  readonly attachments: readonly InboundAttachment[]
  readonly replyTo?: string
}

function readContent({ type, data }: Content): Read | undefined {
  const text = Buffer.from(data).toString('utf8')
  if (type === TYPE.text) return readText(text)
  if (type === TYPE.location) return { text: locationOf(text), attachments: [] }
  return type === TYPE.file ? readFile(text) : undefined
}

function readText(written: string): Read {
  const replyTo = QUOTE.exec(written)?.[1]
  const text = written.replace(QUOTE, '').trim()
  return { text, attachments: [], ...(replyTo !== undefined && { replyTo }) }
}

/** Latitude, longitude and perhaps accuracy; below them a name and an address. */
function locationOf(written: string): string {
  const [coordinates = '', ...lines] = written.split('\n', 10)
  const [latitude, longitude] = coordinates.slice(0, MAX_COORDINATES).split(',')
  const name = lines.map((line) => line.trim()).filter((line) => line !== '')
  return longitude === undefined ? '' : [...name, `Location: ${latitude}, ${longitude}`].join('\n')
}

function readFile(json: string): Read | undefined {
  const file = v.safeParse(File, parsed(json))
  if (!file.success) return undefined
  const { b: blob, k: key, m: type, n: name, s: size, d: caption = '' } = file.output
  const attachment = omitUndefined({
    kind: attachmentKind(type),
    name: name || 'file',
    mime: type,
    size: size !== undefined && Number.isSafeInteger(size) && size >= 0 ? size : undefined,
    reference: { blob: blob.toLowerCase(), key },
  })
  return { text: caption.trim(), attachments: [attachment] }
}

function parsed(json: string): unknown {
  try {
    return readJson(json)
  } catch {
    // Somebody's app wrote it: there is nothing to read in it.
    return undefined
  }
}
