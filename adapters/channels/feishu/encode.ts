import { omitUndefined } from 'svc/sdk'
import type { Destination, OutboundMessage } from 'svc/channels'

const MAX_LABEL = 100
const MAX_BUTTONS = 25
/** A sign that is meant as it is, code, and what could be a tag, such as one that mentions everybody. */
const SPECIAL = /\\([\\*`~|[\]<_#>+.)-])|(`+)[^]*?\2(?!`)|<(?=[a-z/])/gi
const MENTION = /<(?=\/?at\b)/gi

/**
 * The card of a message. A card can be edited as often as needed, and shows Markdown; a text can neither.
 * Source: https://open.feishu.cn/document/feishu-cards/card-json-v2-structure (looked up in November 2026).
 */
export function encodeCard({ text, buttons = [], to }: OutboundMessage): string {
  const elements = [
    ...(text === '' ? [] : [{ tag: 'markdown', content: encodeMarkdown(text) }]),
    ...buttons.slice(0, MAX_BUTTONS).map(({ label, value }) => ({
      tag: 'button',
      text: { tag: 'plain_text', content: label.slice(0, MAX_LABEL) },
      behaviors: [{ type: 'callback', value: omitUndefined({ answer: value, thread: to.threadId }) }],
    })),
  ]
  return JSON.stringify({ schema: '2.0', config: { update_multi: true }, body: { elements } })
}

/** Feishu knows no backslashes: signs that are meant as they are become HTML entities. */
export function encodeMarkdown(text: string): string {
  return text.replaceAll(SPECIAL, (found, sign: string | undefined, fence: string | undefined) => {
    if (sign !== undefined) return entity(sign)
    return fence === undefined ? entity(found) : found.replaceAll(MENTION, '<\u200b')
  })
}

const entity = (sign: string): string => `&#${sign.codePointAt(0)};`

/** A message that is to be sent. */
export interface Content {
  readonly type: 'interactive' | 'image' | 'file'
  readonly content: string
}

/** The body of a message to a chat or a thread. Feishu sends one message for a `uuid` within an hour. */
export function encodeMessage({ chatId, threadId }: Destination, { type, content }: Content, uuid: string) {
  return { receive_id: threadId ?? chatId, msg_type: type, content, uuid }
}

/** The body of a reply. */
export function encodeReply({ type, content }: Content, uuid: string) {
  return { msg_type: type, content, uuid }
}
