import { omitUndefined } from 'svc/sdk'
import type { OutboundAttachment, OutboundMessage } from 'svc/channels'

const MAX_BUTTONS_PER_ROW = 5
const MAX_ROWS = 5
const MAX_LABEL = 80
const MAX_CUSTOM_ID = 100
/** Nobody is notified by what an agent writes. */
const NO_MENTIONS = { parse: [], replied_user: false }

/** The body of `POST /channels/{id}/messages`. */
export function encodeMessage(message: OutboundMessage): Record<string, unknown> {
  return omitUndefined({
    content: message.text === '' ? undefined : message.text,
    allowed_mentions: NO_MENTIONS,
    // The same message again is answered with the first one, for some minutes.
    nonce: nonceOf(message.id),
    enforce_nonce: true,
    message_reference:
      message.replyTo === undefined ? undefined : { message_id: message.replyTo, fail_if_not_exists: false },
    components: componentsOf(message),
    attachments:
      message.attachments.length === 0
        ? undefined
        : message.attachments.map(({ name }, id) => ({ id, filename: name })),
  })
}

/** The body of `PATCH /channels/{id}/messages/{id}`. */
export function encodeEdit(message: OutboundMessage): Record<string, unknown> {
  return omitUndefined({ content: message.text, allowed_mentions: NO_MENTIONS, components: componentsOf(message) })
}

/** The message and its files as a multipart body. */
export async function encodeForm(message: OutboundMessage): Promise<FormData> {
  const form = new FormData()
  form.set('payload_json', JSON.stringify(encodeMessage(message)))
  for (const [index, file] of message.attachments.entries()) form.set(`files[${index}]`, await blobOf(file), file.name)
  return form
}

/** A nonce has at most 25 characters: 22 hold a UUID. */
export function nonceOf(id: string): string {
  return Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')
}

async function blobOf(file: OutboundAttachment): Promise<Blob> {
  return new Blob([new Uint8Array(await file.bytes())], { type: file.mime })
}

function componentsOf({ buttons = [] }: OutboundMessage): readonly unknown[] | undefined {
  // What does not fit is left out: the text of the message says what can be answered.
  const fitting = buttons
    .filter(({ value }) => value.length <= MAX_CUSTOM_ID)
    .slice(0, MAX_BUTTONS_PER_ROW * MAX_ROWS)
    .map(({ label, value }) => ({ type: 2, style: 2, label: label.slice(0, MAX_LABEL), custom_id: value }))
  if (fitting.length === 0) return undefined
  const rows = Math.ceil(fitting.length / MAX_BUTTONS_PER_ROW)
  return Array.from({ length: rows }, (_, row) => ({
    type: 1,
    components: fitting.slice(row * MAX_BUTTONS_PER_ROW, (row + 1) * MAX_BUTTONS_PER_ROW),
  }))
}
