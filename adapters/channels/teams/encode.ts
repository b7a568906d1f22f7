import type { OutboundMessage } from 'svc/channels'

/** What Teams shows of the actions of a card. */
const MAX_BUTTONS = 6

/** The activity that shows a message. */
export function encodeMessage({ text, buttons = [] }: OutboundMessage): Record<string, unknown> {
  // What does not fit is left out: the text of the message says what can be answered.
  const actions = buttons
    .slice(0, MAX_BUTTONS)
    .map(({ label, value }) => ({ type: 'Action.Submit', title: label, data: { svc: value } }))
  return {
    type: 'message',
    text,
    textFormat: 'markdown',
    ...(actions.length > 0 && { attachments: [cardOf(actions)] }),
  }
}

function cardOf(actions: readonly unknown[]) {
  return {
    contentType: 'application/vnd.microsoft.card.adaptive',
    content: { type: 'AdaptiveCard', version: '1.4', body: [], actions },
  }
}
