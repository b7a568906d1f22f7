import { breakMentions } from 'svc/channels'
import type { OutboundMessage } from 'svc/channels'

/** The parameter of a button that has its value. */
export const BUTTON_VALUE = 'svc'
const MAX_BUTTONS = 20
/** `<users/all>` calls everybody in the space. */
const MENTION = /<(?=users\/)/g

/** The body of a new message. `action` names what buttons call: for add-ons, the address of the webhook. */
export function encodeMessage({ text, to, buttons = [] }: OutboundMessage, action: string): Record<string, unknown> {
  return {
    ...encodeText(text),
    ...(to.threadId !== undefined && { thread: { name: to.threadId } }),
    ...(buttons.length > 0 && { accessoryWidgets: [buttonList(buttons, action)] }),
  }
}

/** The body of an edit, which takes away the buttons that are not given. */
export function encodeEdit({ text, buttons = [] }: OutboundMessage, action: string): Record<string, unknown> {
  return { ...encodeText(text), accessoryWidgets: buttons.length > 0 ? [buttonList(buttons, action)] : [] }
}

function encodeText(text: string) {
  return { text: breakMentions(text, MENTION) }
}

function buttonList(buttons: NonNullable<OutboundMessage['buttons']>, action: string) {
  return {
    // What does not fit is left out: the text of the message says what can be answered.
    buttonList: {
      buttons: buttons.slice(0, MAX_BUTTONS).map(({ label, value }) => ({
        text: label,
        onClick: { action: { function: action, parameters: [{ key: BUTTON_VALUE, value }] } },
      })),
    },
  }
}
