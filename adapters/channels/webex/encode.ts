import { omitUndefined } from 'svc/sdk'
import { breakMentions } from 'svc/channels'
import type { OutboundAttachment, OutboundMessage } from 'svc/channels'

const CARD = 'application/vnd.microsoft.card.adaptive'
const MAX_BUTTONS = 20
/** Everybody, or one person, is notified by these. */
const MENTION = /<(?=@(?:all\b|personid:|personemail:|groupmention:)|spark-mention\b)/gi

/** The body of `POST /messages`. */
export function encodeMessage(message: OutboundMessage) {
  return omitUndefined({ ...fieldsOf(message), attachments: cardOf(message) })
}

/** The body of `PUT /messages/{id}`. */
export function encodeEdit({ to, text }: OutboundMessage) {
  return { roomId: to.chatId, markdown: withoutMentions(text) }
}

/** One file, with a text in the first message: Webex takes one for each message. */
export async function encodeFile(message: OutboundMessage, file: OutboundAttachment): Promise<FormData> {
  const form = new FormData()
  for (const [name, value] of Object.entries(fieldsOf(message))) if (value !== undefined) form.set(name, value)
  form.set('files', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
  return form
}

/** A reply goes to the thread of the message, which it may begin: there are no replies but threads. */
function fieldsOf({ to, replyTo, text }: OutboundMessage) {
  return omitUndefined({
    roomId: to.chatId,
    parentId: to.threadId ?? replyTo,
    markdown: text === '' ? undefined : withoutMentions(text),
  })
}

function withoutMentions(text: string): string {
  return breakMentions(text, MENTION)
}

/** Clients show the card in place of the text. */
function cardOf({ text, buttons = [] }: OutboundMessage) {
  if (buttons.length === 0) return undefined
  const content = {
    type: 'AdaptiveCard',
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    version: '1.3',
    body: [{ type: 'TextBlock', text: withoutMentions(text), wrap: true }],
    actions: buttons.slice(0, MAX_BUTTONS).map(({ label, value }) => ({
      type: 'Action.Submit',
      title: label,
      data: { value },
    })),
  }
  return [{ contentType: CARD, content }]
}
