import { breakMentions } from 'svc/channels'
import type { OutboundMessage } from 'svc/channels'

const MAX_BUTTONS = 10
/** `<<@id>>` calls a person, `<<!channel>>` everybody. */
const MENTION = /<(?=<[@!#&])/g

/** The body of a message, new or changed. */
export function encodeMessage(message: OutboundMessage, files: readonly string[] = []): Record<string, unknown> {
  const text = breakMentions(message.text, MENTION)
  // What does not fit is left out: the text of the message says what can be answered.
  const buttons = (message.buttons ?? []).slice(0, MAX_BUTTONS)
  return {
    text,
    ...(buttons.length > 0 && { blocks: blocksOf(text, buttons) }),
    ...(files.length > 0 && { files }),
  }
}

/** Blocks are shown instead of the text. */
function blocksOf(text: string, buttons: NonNullable<OutboundMessage['buttons']>) {
  const section = { type: 'rich_text_section', elements: [{ type: 'text', text }] }
  const elements = buttons.map(({ label, value }) => ({
    type: 'button',
    onAction: 'svc',
    text: { type: 'plain_text', text: label },
    value,
  }))
  return [
    { type: 'rich_text', elements: [section] },
    { type: 'actions', elements },
  ]
}
