import { omitUndefined } from 'svc/sdk'
import { breakMentions } from 'svc/channels'
import type { OutboundMessage } from 'svc/channels'
import { timestampOf } from './message-id.ts'

const MAX_SECTION = 3000
const MAX_BUTTONS = 25
const MAX_LABEL = 75
const MAX_VALUE = 2000

/** People, groups and everybody are called by these. Links begin with an address. */
const MENTION = /<(?=[!@])|@(?=(?:here|channel|everyone)\b)/gi

/** Names what the adapter keeps with its messages. */
export const METADATA_TYPE = 'svc_message'

/** The body of `chat.postMessage`. */
export function encodeMessage(message: OutboundMessage, unfurl: boolean): Record<string, unknown> {
  return omitUndefined({
    channel: message.to.chatId,
    text: breakMentions(message.text, MENTION),
    thread_ts: threadOf(message),
    blocks: blocksOf(message),
    // An attempt that follows one without an answer finds the message by it.
    metadata: { event_type: METADATA_TYPE, event_payload: { id: message.id } },
    mrkdwn: true,
    unfurl_links: unfurl,
    unfurl_media: unfurl,
  })
}

/** The body of `chat.update`. Blocks that are not given are kept: an edit without buttons takes them away. */
export function encodeEdit(message: OutboundMessage, id: string): Record<string, unknown> {
  return {
    channel: message.to.chatId,
    ts: timestampOf(id),
    text: breakMentions(message.text, MENTION),
    blocks: blocksOf(message) ?? [],
  }
}

/** The body of `files.completeUploadExternal`, which posts the files and the text as one message. */
export function encodeUpload(
  message: OutboundMessage,
  files: readonly { readonly id: string; readonly title: string }[],
): Record<string, unknown> {
  return omitUndefined({
    files,
    channel_id: message.to.chatId,
    thread_ts: threadOf(message),
    initial_comment: message.text === '' ? undefined : breakMentions(message.text, MENTION),
  })
}

/** Slack has no replies but threads: a reply goes to the thread of the message, which it may begin. */
export function threadOf({ to, replyTo }: OutboundMessage): string | undefined {
  return to.threadId ?? (replyTo === undefined ? undefined : timestampOf(replyTo))
}

function blocksOf({ text, buttons = [] }: OutboundMessage): readonly unknown[] | undefined {
  // What does not fit is left out: the text of the message says what can be answered.
  const fitting = buttons.filter(({ value }) => value.length <= MAX_VALUE).slice(0, MAX_BUTTONS)
  if (fitting.length === 0) return undefined
  const sections = sectionsOf(breakMentions(text, MENTION)).map((part) => ({
    type: 'section',
    text: { type: 'mrkdwn', text: part },
  }))
  const elements = fitting.map(({ label, value }, index) => ({
    type: 'button',
    action_id: `choice-${index}`,
    text: { type: 'plain_text', text: label.slice(0, MAX_LABEL) },
    value,
  }))
  return [...sections, { type: 'actions', elements }]
}

/** Pieces that fit a section each, cut at the end of a line where there is one. */
function sectionsOf(text: string): readonly string[] {
  const parts: string[] = []
  let rest = text
  while (rest.length > MAX_SECTION) {
    const end = rest.lastIndexOf('\n', MAX_SECTION)
    const cut = end > 0 ? end : MAX_SECTION
    parts.push(rest.slice(0, cut))
    rest = rest.slice(cut)
  }
  return rest.trim() === '' ? parts : [...parts, rest]
}
