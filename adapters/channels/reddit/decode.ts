import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import type { Item } from './wire.ts'

export const PERSON = 'u/'
const COMMUNITY = 'r/'
/** Shown for accounts that are gone. */
const DELETED = '[deleted]'
/** It answers comments by itself: other accounts do not say whether a program writes with them. */
const MODERATOR = 'AutoModerator'
/** Notices that Reddit itself writes. */
const SYSTEM: ReadonlySet<string> = new Set(['admin', 'gold-auto'])

export interface DecodeContext {
  /** The name of the account. */
  readonly username: string
  /** It stands in the inbox of the account: it is a reply to it, or mentions it. */
  readonly isInbox: boolean
}

/** The comment or message of a person; `undefined` for those of the account itself and of Reddit. */
export function decodeItem({ kind, data }: Item, { username, isInbox }: DecodeContext): InboundMessage | undefined {
  const { author, distinguished, subreddit } = data
  if (author == null || author === '' || author === DELETED) return undefined
  if (author.toLowerCase() === username.toLowerCase() || SYSTEM.has(distinguished ?? '')) return undefined
  const mention = new RegExp(String.raw`(?<![\w/])\/?u\/${RegExp.escape(username)}(?![\w-])`, 'gi')
  const isMentioned = mention.test(data.body)
  const text = isMentioned ? withoutMention(data.body, mention) : data.body.trim()
  const mentionsBot = isInbox || isMentioned
  if (text === '' && !mentionsBot) return undefined
  const isComment = kind === 't1'
  if (isComment && !subreddit) return undefined
  return omitUndefined({
    id: data.name,
    chat: isComment
      ? { id: `${COMMUNITY}${subreddit}`, kind: 'group' as const, title: `${COMMUNITY}${subreddit}` }
      : { id: `${PERSON}${author}`, kind: 'direct' as const },
    threadId: isComment ? postOf(data) : undefined,
    // A name never changes, and is never given to somebody else.
    sender: omitUndefined({ id: author, name: author, isBot: author === MODERATOR || undefined }),
    text,
    attachments: [],
    mentionsBot,
    replyTo: data.parent_id ?? undefined,
    sentAt: isoTime(data.created_utc * 1000),
    replyContext: { name: data.name },
  })
}

/** What is addressed to the account begins with its name and often a comma. */
function withoutMention(body: string, mention: RegExp): string {
  return body
    .replace(mention, '')
    .trim()
    .replace(/^[,:]\s*/, '')
}

/** The post below which a comment stands. Its address is /r/community/comments/<post>/title/<comment>/. */
function postOf({ link_id: link, context }: Item['data']): string | undefined {
  if (link != null) return link
  const [, post] = /^\/r\/[^/]{1,50}\/comments\/([0-9a-z]{1,20})\//.exec(context ?? '') ?? []
  return post === undefined ? undefined : `t3_${post}`
}
