import PostalMime from 'postal-mime'
import type { Email } from 'postal-mime'
import { attachmentKind, htmlToText, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage, JsonObject } from 'svc/channels'
import { isAuthentic } from './authentication.ts'
import type { EmailConfig } from './config.ts'

const MAX_NESTING = 50
const MAX_HEADER_BYTES = 262_144
const MAX_REFERENCES = 10
const MAX_ID_CHARS = 250
const ROBOTS = /^(?:mailer-daemon|postmaster|no-?reply|do-?not-?reply|bounces?(?:[+-][^@]*)?)@/

/** Where a mail is in the mailbox. */
export interface Position {
  readonly uidValidity: string
  readonly uid: number
}
export interface Received extends Position {
  readonly source: Uint8Array
  /** When the server took it. */
  readonly at: number
}

export async function parseMail(source: Uint8Array): Promise<Email> {
  return await PostalMime.parse(source, { maxNestingDepth: MAX_NESTING, maxHeadersSize: MAX_HEADER_BYTES })
}

/** The message, or why the mail is none that is answered. */
export async function decodeMail(
  received: Received,
  config: EmailConfig,
): Promise<{ readonly message: InboundMessage } | { readonly dropped: string }> {
  const mail = await parseMail(received.source)
  const address = mail.from?.address?.toLowerCase() ?? ''
  const header = (name: string): string => mail.headers.find(({ key }) => key === name)?.value ?? ''
  const automatic = findAutomatic(header, address, config)
  if (automatic !== undefined) return { dropped: automatic }
  const isVerified = isAuthentic(mail.headers, address, config.auth_server)
  if (config.auth_server !== undefined && !isVerified)
    return { dropped: `${address} is not verified by the mail server` }
  const id = mail.messageId ?? `<${received.uidValidity}.${received.uid}@svc.invalid>`
  const references = idsIn(mail.references ?? '')
  const [replyTo] = idsIn(mail.inReplyTo ?? '')
  const { subject = '' } = mail
  const agent = /^(?:(?:re|aw|sv):\s*)*\[([\w-]{1,64})\]/i.exec(subject)?.[1]
  return {
    message: {
      id,
      chat: { id: address, kind: 'direct', ...(subject !== '' && { title: subject }) },
      threadId: references[0] ?? replyTo ?? id,
      sender: {
        id: address,
        name: mail.from?.name || address,
        handle: `@${address.split('@').at(-1)}`,
        ...(!isVerified && { isUnverified: true }),
      },
      text: textOf(mail, replyTo === undefined),
      attachments: attachmentsOf(mail, received),
      mentionsBot: true,
      ...(replyTo !== undefined && { replyTo }),
      sentAt: isoTime(received.at),
      ...(agent !== undefined && { agent }),
      replyContext: contextOf(id, subject, references),
    },
  }
}

/** Answering automatic mail would go on for ever. */
function findAutomatic(header: (name: string) => string, address: string, config: EmailConfig): string | undefined {
  if (address === '') return 'it has no sender'
  if (address === config.address.toLowerCase()) return 'it is from the bot itself'
  const submitted = header('auto-submitted').toLowerCase()
  if (submitted !== '' && !submitted.startsWith('no')) return 'it was sent automatically'
  if (/bulk|list|junk|auto_reply/i.test(header('precedence'))) return 'it was sent to many'
  if (['list-id', 'list-post', 'list-unsubscribe'].some((name) => header(name) !== ''))
    return 'it is from a mailing list'
  if (ROBOTS.test(address)) return 'it is from a mail server, or from an address that is not read'
  if (/^\s*multipart\/report\b/i.test(header('content-type'))) return 'it is a report about another mail'
  if (/\b(all|autoreply)\b/i.test(header('x-auto-response-suppress'))) return 'it asks for no automatic answer'
  if (header('return-path').trim() === '<>') return 'it is a report about another mail'
  return undefined
}

function textOf(mail: Email, isNew: boolean): string {
  const body = (mail.text || htmlToText(mail.html ?? '')).replaceAll('\r\n', '\n').trim()
  return isNew && mail.subject ? `${mail.subject}\n\n${body}`.trim() : body
}

function attachmentsOf({ attachments }: Email, { uidValidity, uid }: Position): readonly InboundAttachment[] {
  return attachments.map(({ filename, mimeType, content }, index) => ({
    kind: attachmentKind(mimeType),
    name: filename?.replaceAll(/[/\\\p{Cc}]/gu, '_') || `file-${index + 1}`,
    mime: mimeType,
    size: sizeOf(content),
    reference: { uidValidity, uid, index },
  }))
}
function sizeOf(content: ArrayBuffer | Uint8Array | string): number {
  return typeof content === 'string' ? Buffer.byteLength(content) : content.byteLength
}

function contextOf(id: string, subject: string, references: readonly string[]): JsonObject {
  // The first one is the thread; the last ones are enough to place the answer in it.
  const known = [...new Set([...references.slice(0, 1), ...references.slice(-MAX_REFERENCES), id])]
  return { subject: subject.slice(0, MAX_ID_CHARS), references: known }
}

/** Ids in a header; longer ones are not those of mail programs. */
function idsIn(text: string): readonly string[] {
  return (text.match(/<[^<>\s]+>/g) ?? []).filter((id) => id.length <= MAX_ID_CHARS)
}
