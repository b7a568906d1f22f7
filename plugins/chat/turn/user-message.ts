import { Refusal } from 'svc/sdk'
import type { EntryPoint } from '../../journal/contract.ts'
import type { Block, Label } from '../../sessions/contract.ts'
import type { ChatConfig } from '../config.ts'
import type { TurnRequest } from '../contract.ts'
import { holdsPersonalData } from '../safety/personal-data.ts'

/** Labels of text by its entry point. A schedule's or a workflow's text is the operator's own. */
const ENTRY_POINT_LABELS: Readonly<Partial<Record<EntryPoint, readonly Label[]>>> = {
  rest: ['UserInput'],
  sse: ['UserInput'],
  websocket: ['UserInput'],
  openai: ['UserInput'],
  cli: ['UserInput'],
  channel: ['UserInput'],
  hook: ['UserInput'],
  trigger: ['UserInput'],
  agent: ['UntrustedAgent'],
  a2a: ['UntrustedAgent'],
}

/** The message of a request with its labels, as it is stored. Throws when it is empty or too large. */
export function toUserMessage(request: TurnRequest, config: ChatConfig): readonly Block[] {
  const { text, images = [], entryPoint, labels: given = [] } = request
  checkSize(text, images.length, config)
  const labels = new Set<Label>([...(ENTRY_POINT_LABELS[entryPoint] ?? []), ...given])
  if (holdsPersonalData(text, config.personal_data)) labels.add('Pii')
  const blocks: Block[] = []
  // An image has no labels; an empty text beside it carries them.
  if (text !== '' || labels.size > 0)
    blocks.push({ type: 'text', text, ...(labels.size > 0 && { labels: [...labels] }) })
  for (const image of images) blocks.push({ type: 'image', ...image })
  return blocks
}

function checkSize(text: string, images: number, config: ChatConfig): void {
  const { message_bytes: maxBytes, message_chars: maxChars, images_per_message: maxImages } = config
  if (text.trim() === '' && images === 0) throw new Refusal('invalid_request', 'message: must not be empty')
  if (text.length > maxChars)
    throw new Refusal(
      'payload_too_large',
      `The message is longer than ${maxChars} characters (plugins.chat.message_chars)`,
    )
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes)
    throw new Refusal('payload_too_large', `The message is larger than ${maxBytes} bytes (plugins.chat.message_bytes)`)
  if (images > maxImages)
    throw new Refusal(
      'payload_too_large',
      `The message has more than ${maxImages} images (plugins.chat.images_per_message)`,
    )
}
