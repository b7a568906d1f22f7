import mime from 'mime'
import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { attachmentKind } from 'svc/channels'
import type { InboundAttachment } from 'svc/channels'
import { Content, Part } from './wire.ts'

const MAX_FILES = 20

/** What is in a message, with the keys of mentions in the text. */
export interface ReadContent {
  readonly text: string
  readonly attachments: readonly InboundAttachment[]
}

/** Reads the content of a message of any type; empty for what has no text and no file. */
export function readContent(messageId: string, type: string, raw: string): ReadContent {
  const parsed = v.safeParse(Content, readInner(raw))
  const content = parsed.success ? parsed.output : {}
  const file = (key: string, name: string): InboundAttachment => fileOf(messageId, key, name)
  switch (type) {
    case 'text':
      return { text: content.text ?? '', attachments: [] }
    case 'post':
      return readPost(messageId, content)
    case 'image':
      return { text: '', attachments: content.image_key ? [imageOf(messageId, content.image_key)] : [] }
    case 'file':
      return { text: '', attachments: content.file_key ? [file(content.file_key, content.file_name || 'file')] : [] }
    case 'audio':
      return { text: '', attachments: content.file_key ? [file(content.file_key, 'voice.ogg')] : [] }
    case 'media':
      return {
        text: '',
        attachments: content.file_key ? [file(content.file_key, content.file_name || 'video.mp4')] : [],
      }
    case 'location':
      return { text: locationOf(content), attachments: [] }
    default:
      return { text: '', attachments: [] }
  }
}

function readPost(messageId: string, { title, content }: Content): ReadContent {
  const lines = (content ?? []).map((line) => line.flatMap((raw) => partOf(raw)))
  const text = lines.map((line) => line.map(textOf).join(''))
  const attachments = lines.flat().flatMap((part) => {
    if (part.tag === 'img' && part.image_key) return [imageOf(messageId, part.image_key)]
    return part.tag === 'media' && part.file_key ? [fileOf(messageId, part.file_key, 'video.mp4')] : []
  })
  const whole = [title ?? '', ...text].join('\n').trim()
  return { text: whole, attachments: attachments.slice(0, MAX_FILES) }
}

function partOf(raw: unknown): readonly Part[] {
  const parsed = v.safeParse(Part, raw)
  return parsed.success ? [parsed.output] : []
}

function textOf({ tag, text, href, user_id: user, language, emoji_type: emoji }: Part): string {
  switch (tag) {
    case 'a':
      return href && href !== text ? `[${text ?? ''}](${href})` : (text ?? '')
    case 'at':
      return user ?? ''
    case 'code_block':
      return `\n\`\`\`${language?.toLowerCase() ?? ''}\n${text ?? ''}\n\`\`\`\n`
    case 'emotion':
      return emoji ? `:${emoji}:` : ''
    case 'hr':
      return '\n---\n'
    default:
      return text ?? ''
  }
}

function locationOf({ name, longitude, latitude }: Content): string {
  const place = longitude != null && latitude != null ? `Location: ${latitude}, ${longitude}` : ''
  return [name ?? '', place].filter((line) => line !== '').join('\n')
}

/** Feishu does not tell the type of a picture; most are PNG, and the content decides in the end. */
function imageOf(message: string, key: string): InboundAttachment {
  return { kind: 'image', name: 'image.png', mime: 'image/png', reference: { message, key, type: 'image' } }
}

function fileOf(message: string, key: string, name: string): InboundAttachment {
  const type = mime.getType(name) ?? 'application/octet-stream'
  return { kind: attachmentKind(type), name, mime: type, reference: { message, key, type: 'file' } }
}

function readInner(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return {}
  }
}
