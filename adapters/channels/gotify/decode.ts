import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import type { Message } from './wire.ts'

/**
 * Marks what the bot sends, with the id of the message: the stream sends it back, also after a restart. The server keeps
 * extras as they are, under keys of this form.
 */
export const OWN_MARK = 'svc::message::sent'

/** The id under which the bot sent this message; `undefined` for those of others. */
export function ownIdOf({ extras }: Message): unknown {
  return extras?.[OWN_MARK]
}

/** Alerts often say what they are about in the title. The server puts the name of the application where there is none. */
function textOf({ title, message }: Message, applicationName: string): string {
  return !title || title === applicationName ? message : `${title}\n\n${message}`
}

/** The message of an application; `undefined` for what the bot sent itself. */
export function decodeMessage(message: Message, applicationName: string | undefined): InboundMessage | undefined {
  if (ownIdOf(message) !== undefined || message.message.trim() === '') return undefined
  const application = String(message.appid)
  const name = applicationName ?? `application ${application}`
  return omitUndefined({
    id: String(message.id),
    // Each application is a chat of its own; every answer goes out as the application of the bot.
    chat: { id: application, kind: 'direct' as const, title: name },
    sender: { id: application, name },
    text: textOf(message, name),
    attachments: [],
    mentionsBot: true,
    sentAt: isoTime(Date.parse(message.date)),
  })
}
