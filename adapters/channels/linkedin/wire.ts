import * as v from 'valibot'

/**
 * Only the fields that are read. Sources:
 * https://learn.microsoft.com/linkedin/marketing/community-management/organizations/organization-social-action-notifications
 * and https://learn.microsoft.com/linkedin/marketing/community-management/shares/comments-api (looked up in November
 * 2026).
 */
const Urn = v.pipe(v.string(), v.regex(/^urn:li:[A-Za-z]{1,64}:[\w(),:.=-]{1,300}$/))
/** A post or its thread of comments, and the number of the comment in it. */
export const CommentUrn = v.pipe(
  v.string(),
  v.regex(/^urn:li:comment:\((?:urn:li:)?(?:activity|ugcPost|share|groupPost):\d{1,30},\d{1,30}\)$/),
)

const Time = v.pipe(v.number(), v.finite())

export const Notification = v.object({
  action: v.string(),
  lastModifiedAt: Time,
  organizationalEntity: v.string(),
  generatedActivity: CommentUrn,
})
export type Notification = v.InferOutput<typeof Notification>
export const List = v.object({ elements: v.array(v.unknown()) })

/** A part of a text that names somebody: `value` has the address of who it is, two levels deep. */
const Attribute = v.object({
  start: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  length: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  value: v.optional(v.record(v.string(), v.unknown())),
})
export type Attribute = v.InferOutput<typeof Attribute>

export const Comment = v.object({
  actor: Urn,
  commentUrn: v.optional(CommentUrn),
  object: Urn,
  parentComment: v.nullish(CommentUrn),
  created: v.object({ time: Time }),
  message: v.object({ text: v.string(), attributes: v.nullish(v.array(Attribute), []) }),
})
export type Comment = v.InferOutput<typeof Comment>

export const Sent = v.object({ commentUrn: CommentUrn })
export const Organization = v.object({ localizedName: v.pipe(v.string(), v.minLength(1)) })

/** What a reply needs: the thread of the post, and the comment below which it stands. */
export const ReplyContext = v.object({ object: Urn, parent: CommentUrn })
export type ReplyContext = v.InferOutput<typeof ReplyContext>

export const Tokens = v.object({ access: v.string(), refresh: v.optional(v.string()) })
export type Tokens = v.InferOutput<typeof Tokens>
const Token = v.pipe(v.string(), v.minLength(1))
export const Renewed = v.object({ access_token: Token, refresh_token: v.optional(Token) })
/** Times in seconds. */
export const Introspection = v.object({ active: v.boolean(), expires_at: v.optional(Time) })

export const Failure = v.object({ message: v.string() })
export const AuthFailure = v.object({ error: v.string(), error_description: v.optional(v.string(), '') })
