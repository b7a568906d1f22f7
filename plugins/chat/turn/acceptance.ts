import { Refusal } from 'svc/sdk'
import { QUIET_HOURS } from '../../agents/contract.ts'
import type { EntryPoint, Turn } from '../../journal/contract.ts'
import type { Block } from '../../sessions/contract.ts'
import type { ChatConfig } from '../config.ts'
import type { TurnRequest } from '../contract.ts'
import { labelsOfMessage } from '../safety/labels.ts'

/** The message of a request with its labels, as it is stored. Throws when it is empty or too large. */
export function toUserMessage(request: TurnRequest, config: ChatConfig): readonly Block[] {
  const { text, images = [], entryPoint, labels: given = [] } = request
  checkSize(text, images.length, config)
  const labels = labelsOfMessage(entryPoint, text, given, config.personal_data)
  const blocks: Block[] = []
  // An image has no labels; an empty text beside it carries them.
  if (text !== '' || labels.length > 0) blocks.push({ type: 'text', text, ...(labels.length > 0 && { labels }) })
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

/** More messages wait in a session than may. */
export function queueFull(max: number): Refusal {
  return new Refusal(
    'rate_limit',
    `This session has ${max} messages waiting already (plugins.chat.queue_length); send more when some are answered`,
    { retryAfterSecs: 5 },
  )
}

/** Entry points through which nobody speaks: the turn was started by a clock or an event. */
const automated: ReadonlySet<EntryPoint> = new Set<EntryPoint>(['schedule', 'trigger', 'task', 'hook'])
export const isAutomated = (entryPoint: EntryPoint): boolean => automated.has(entryPoint)

/**
 * Seconds until the quiet hours end; 0 outside of them. `hours` is `HH:MM-HH:MM` in the daemon's local time and may
 * span midnight. Any other form means no quiet hours, and loading the manifest warns about it.
 */
export function quietFor(hours: string | undefined, now: Date): number {
  const [, fromHour, fromMinute, toHour, toMinute] = QUIET_HOURS.exec(hours ?? '') ?? []
  if (fromHour === undefined) return 0
  const from = Number(fromHour) * 60 + Number(fromMinute)
  const to = Number(toHour) * 60 + Number(toMinute)
  if (from > 1440 || to > 1440 || from === to) return 0
  const at = now.getHours() * 60 + now.getMinutes()
  const quiet = from < to ? at >= from && at < to : at >= from || at < to
  return quiet ? ((to - at + 1440) % 1440 || 1440) * 60 - now.getSeconds() : 0
}

/** A turn that waits or runs. */
export const isOpen = ({ state }: Pick<Turn, 'state'>): boolean =>
  state === 'queued' || state === 'running' || state === 'waiting'
