import { omitUndefined } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'
import type { ReplyContext } from './wire.ts'

const MAX_BUTTONS = 13
/** Characters of the label of an action, as people see them. */
const MAX_LABEL = 20
/** Characters of what a press sends. */
const MAX_VALUE = 300
const segmenter = () => new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** A text message. It quotes the message it answers, of which LINE wants the token. */
export function encodeText({ text, replyTo, buttons = [] }: OutboundMessage, context: ReplyContext | undefined) {
  // What does not fit is left out: the text of the message says what can be answered.
  const items = buttons
    .filter(({ value }) => value.length <= MAX_VALUE)
    .slice(0, MAX_BUTTONS)
    .map(({ label, value }) => ({
      type: 'action',
      action: { type: 'postback', label: shorten(label), data: value, displayText: label.slice(0, MAX_VALUE) },
    }))
  return omitUndefined({
    type: 'text',
    text,
    quoteToken: replyTo !== undefined && replyTo === context?.messageId ? context.quoteToken : undefined,
    quickReply: items.length === 0 ? undefined : { items },
  })
}

function shorten(label: string): string {
  const characters = segmenter().segment(label)
  return [...Iterator.from(characters).take(MAX_LABEL)].map(({ segment }) => segment).join('')
}
