import type Mail from 'nodemailer/lib/mailer/index.js'
import type { OutboundMessage } from 'svc/channels'
import type { EmailConfig } from './config.ts'

/** The same for every attempt to send a message. */
export function messageIdOf(message: OutboundMessage, { address }: EmailConfig): string {
  return `<${message.id}@${address.split('@').at(-1) ?? ''}>`
}

export async function encodeMail(message: OutboundMessage, config: EmailConfig): Promise<Mail.Options> {
  const { to, replyTo, attachments, text, plainText } = message
  const { subject, references } = to.replyContext ?? {}
  const known = Array.isArray(references) ? references.filter((id) => typeof id === 'string') : []
  const inReplyTo = replyTo ?? known.at(-1)
  const thread = [...new Set([...(to.threadId ? [to.threadId] : []), ...known, ...(inReplyTo ? [inReplyTo] : [])])]
  return {
    messageId: messageIdOf(message, config),
    from: { name: config.display_name ?? '', address: config.address },
    to: { name: '', address: to.chatId },
    subject: typeof subject === 'string' && subject !== '' ? answerTo(subject) : config.subject,
    ...(inReplyTo !== undefined && { inReplyTo }),
    ...(thread.length > 0 && { references: thread }),
    // Says to other programs that answer mail that they must not.
    headers: { 'Auto-Submitted': inReplyTo === undefined ? 'auto-generated' : 'auto-replied' },
    text: plainText,
    ...(text !== '' && { html: text }),
    attachments: await Promise.all(
      attachments.map(async (file) => ({
        filename: file.name,
        contentType: file.mime,
        content: Buffer.from(await file.bytes()),
      })),
    ),
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

function answerTo(subject: string): string {
  return /^(?:re|aw|sv):/i.test(subject) ? subject : `Re: ${subject}`
}
