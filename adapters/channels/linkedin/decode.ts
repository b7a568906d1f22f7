import { isObject, omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import type { Attribute, Comment, ReplyContext } from './wire.ts'

export interface DecodeContext {
  /** The URN of the comment. */
  readonly urn: string
  /** The URN of the organization. */
  readonly organization: string
}

/** The comment of a member; `undefined` for those of the organization itself. */
export function decodeComment(comment: Comment, { urn, organization }: DecodeContext): InboundMessage | undefined {
  const { actor, message, parentComment, object, created } = comment
  if (actor === organization) return undefined
  const mentions = (message.attributes ?? []).filter(isMentionOf(organization))
  // Below a post of the organization; an answer to somebody else's comment need not be for it.
  const mentionsBot = parentComment == null || mentions.length > 0
  const text = withoutMentions(message.text, mentions)
  if (text === '' && !mentionsBot) return undefined
  // LinkedIn shows answers one level deep.
  const parent = parentComment ?? urn
  return omitUndefined({
    id: urn,
    chat: { id: organization, kind: 'group' as const },
    threadId: parent,
    // Names are told to few apps.
    sender: { id: actor, name: actor.slice(actor.lastIndexOf(':') + 1) || actor },
    text,
    attachments: [],
    mentionsBot,
    replyTo: parentComment ?? undefined,
    sentAt: isoTime(created.time),
    replyContext: { object, parent } satisfies ReplyContext,
  })
}

/** `{ company: { company: 'urn:li:organization:1' } }`; which names stand around the URN differs by version. */
const isMentionOf =
  (organization: string) =>
  ({ value = {} }: Attribute): boolean =>
    Object.values(value).some((inner) => isObject(inner) && Object.values(inner).includes(organization))

/** What is addressed to the organization begins with its name and often a comma. */
function withoutMentions(text: string, mentions: readonly Attribute[]): string {
  let rest = text
  for (const { start, length } of mentions.toSorted((one, other) => other.start - one.start))
    rest = rest.slice(0, start) + rest.slice(start + length)
  return mentions.length === 0 ? text.trim() : rest.trim().replace(/^[,:]\s*/, '')
}
