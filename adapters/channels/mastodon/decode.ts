import mime from 'mime'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, htmlToText, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { Account, Media, Status } from './wire.ts'

/** The chat of every post that others can find, too. */
export const TIMELINE = 'timeline'
const MAX_FILES = 20
const MAX_URL = 2000

export interface DecodeContext {
  readonly bot: Account
  /** The host in addresses of local accounts, such as `mastodon.example`. */
  readonly domain: string
  readonly ignoreBots: boolean
  /** The first post of the thread. */
  readonly root: string
}

export const isDirect = ({ visibility }: Status): boolean => visibility === 'direct'

/** The message of a post that mentions the bot; `undefined` for its own, and for those of bots. */
export function decodeStatus(status: Status, context: DecodeContext): InboundMessage | undefined {
  const { account, spoiler_text: warning } = status
  const { bot, domain, ignoreBots, root } = context
  if (account.id === bot.id || (ignoreBots && account.bot === true)) return undefined
  const text = withoutMention(htmlToText(status.content), mentionOf(bot.username, domain))
  return omitUndefined({
    id: status.id,
    // An answer that only the mentioned can read goes to its author alone.
    chat: isDirect(status)
      ? { id: account.id, kind: 'direct' as const }
      : { id: TIMELINE, kind: 'group' as const, title: 'Timeline' },
    threadId: isDirect(status) ? undefined : root,
    sender: {
      id: account.id,
      name: account.display_name || account.username,
      handle: `@${account.acct}`,
    },
    text: warning === '' ? text : `${warning}\n\n${text}`,
    attachments: status.media_attachments.slice(0, MAX_FILES).flatMap(fileOf),
    mentionsBot: true,
    replyTo: status.in_reply_to_id ?? undefined,
    sentAt: isoTime(Date.parse(status.created_at)),
    replyContext: { status: status.id, acct: account.acct, visibility: status.visibility },
  })
}

/** `@svc`, or `@svc@mastodon.example` as other servers write it; not `@svc@other.example`. */
function mentionOf(username: string, domain: string): RegExp {
  const host = domain === '' ? '' : `(?:@${RegExp.escape(domain)})?`
  return new RegExp(`(^|[^\\w@./-])@${RegExp.escape(username)}${host}(?![\\w@-]|\\.\\w)`, 'gi')
}

/** What is addressed to the bot begins with its name and often a comma. */
function withoutMention(written: string, mention: RegExp): string {
  const text = written.replace(mention, '$1').trim()
  return text === written ? text : text.replace(/^[,:]\s*/, '')
}

/** The instance keeps a copy of each file at an address without the name that it had. */
function fileOf({ type, url, description }: Media): readonly InboundAttachment[] {
  const path = URL.parse(url ?? '')?.pathname
  if (url == null || path === undefined || url.length > MAX_URL) return []
  const guessed = mime.getType(path) ?? 'application/octet-stream'
  const kind = type === 'gifv' ? 'video' : type === 'unknown' ? attachmentKind(guessed) : attachmentKind(`${type}/`)
  const name = path.split('/').at(-1) || 'file'
  return [
    { kind, name: description ? `${description.slice(0, 100)} (${name})` : name, mime: guessed, reference: { url } },
  ]
}
