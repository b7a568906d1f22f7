import { omitUndefined } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'
import type { ViberConfig } from './config.ts'

const MAX_BUTTONS = 12
const MAX_LABEL = 250

/** The body of `send_message`. */
export function encodeMessage({ to, text, buttons = [] }: OutboundMessage, { sender_name, avatar }: ViberConfig) {
  const choices = buttons.slice(0, MAX_BUTTONS)
  return omitUndefined({
    receiver: to.chatId,
    min_api_version: 1,
    sender: omitUndefined({ name: sender_name, avatar }),
    type: 'text',
    text,
    keyboard: choices.length === 0 ? undefined : keyboardOf(choices),
  })
}

/** Each button is a row of its own. A press is sent as a message of the person. */
function keyboardOf(buttons: NonNullable<OutboundMessage['buttons']>) {
  return {
    Type: 'keyboard',
    DefaultHeight: false,
    Buttons: buttons.map(({ label, value }) => ({
      Columns: 6,
      Rows: 1,
      ActionType: 'reply',
      ActionBody: value,
      Text: escapeHtml(label.slice(0, MAX_LABEL)),
    })),
  }
}

/** Viber reads tags in the texts of buttons. */
function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
