import * as v from 'valibot'

/**
 * Only the fields that are read. Sources: https://dev.twitch.tv/docs/eventsub/websocket-reference,
 * https://dev.twitch.tv/docs/eventsub/eventsub-subscription-types/#channelchatmessage and
 * https://dev.twitch.tv/docs/api/reference/#send-chat-message (looked up in November 2026).
 */
const Id = v.pipe(v.string(), v.minLength(1), v.maxLength(100))

export const Frame = v.object({
  metadata: v.object({
    message_type: v.string(),
    message_timestamp: v.optional(v.string(), ''),
    subscription_type: v.optional(v.string()),
  }),
  payload: v.unknown(),
})
export type Frame = v.InferOutput<typeof Frame>

export const Welcome = v.object({ session: v.object({ id: v.pipe(v.string(), v.minLength(1)) }) })
export const Reconnect = v.object({ session: v.object({ reconnect_url: v.string() }) })
export const Revocation = v.object({
  subscription: v.object({
    status: v.string(),
    condition: v.optional(v.object({ broadcaster_user_id: v.optional(v.string()) })),
  }),
})

const Fragment = v.object({
  type: v.string(),
  text: v.string(),
  mention: v.nullish(v.object({ user_id: v.string() })),
})
export const ChatMessage = v.object({
  broadcaster_user_id: Id,
  broadcaster_user_name: v.string(),
  chatter_user_id: Id,
  chatter_user_login: v.string(),
  chatter_user_name: v.string(),
  message_id: Id,
  message: v.object({ text: v.string(), fragments: v.optional(v.array(Fragment), []) }),
  badges: v.nullish(v.array(v.object({ set_id: v.string() }))),
  reply: v.nullish(v.object({ parent_message_id: Id, parent_user_id: v.nullish(v.string()) })),
  /** Set where several channels share one chat: the channel that the message was written in. */
  source_broadcaster_user_id: v.nullish(v.string()),
})
export type ChatMessage = v.InferOutput<typeof ChatMessage>
export const Notification = v.object({ event: ChatMessage })

/** Whose token it is, and what it permits. */
export const Account = v.object({
  client_id: v.string(),
  user_id: Id,
  login: v.string(),
  scopes: v.nullish(v.array(v.string()), []),
})
export type Account = v.InferOutput<typeof Account>

export const User = v.object({ id: Id, login: v.string() })
export type User = v.InferOutput<typeof User>
export const UserList = v.object({ data: v.array(User) })

export const Subscribed = v.object({ data: v.array(v.object({ status: v.string() })) })

const DropReason = v.object({ code: v.string(), message: v.nullish(v.string(), '') })
export const Sent = v.object({
  data: v.tuple([
    v.object({ message_id: v.nullish(v.string(), ''), is_sent: v.boolean(), drop_reason: v.nullish(DropReason) }),
  ]),
})

export const Tokens = v.object({ access: v.string(), refresh: v.optional(v.string()) })
export type Tokens = v.InferOutput<typeof Tokens>
const Token = v.pipe(v.string(), v.minLength(1))
export const Renewed = v.object({ access_token: Token, refresh_token: v.optional(Token) })

export const Failure = v.object({ message: v.string() })
