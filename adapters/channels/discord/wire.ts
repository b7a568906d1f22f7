import * as v from 'valibot'

/** Only the fields that are read. Source: https://docs.discord.com/developers/resources/message */
const Text = v.nullish(v.string())
/** Ids of roles of the server. */
const Roles = v.nullish(v.array(v.string()))

export const User = v.object({
  id: v.string(),
  username: v.string(),
  global_name: Text,
  bot: v.nullish(v.boolean()),
})
export type User = v.InferOutput<typeof User>

export const Attachment = v.object({
  id: v.string(),
  filename: v.string(),
  url: v.string(),
  content_type: Text,
  size: v.nullish(v.number()),
})
export type Attachment = v.InferOutput<typeof Attachment>

export const Message = v.object({
  id: v.string(),
  channel_id: v.string(),
  guild_id: Text,
  author: User,
  member: v.nullish(v.object({ nick: Text, roles: Roles })),
  content: v.optional(v.string(), ''),
  timestamp: v.string(),
  edited_timestamp: Text,
  type: v.optional(v.number(), 0),
  webhook_id: Text,
  mentions: v.optional(v.array(User), []),
  attachments: v.optional(v.array(Attachment), []),
  sticker_items: v.optional(v.array(v.object({ name: v.string() })), []),
  message_reference: v.nullish(v.object({ message_id: Text, type: v.nullish(v.number()) })),
  referenced_message: v.nullish(v.object({ author: v.nullish(v.object({ id: v.string() })) })),
})
export type Message = v.InferOutput<typeof Message>

/** The press of a button. Source: https://docs.discord.com/developers/interactions/receiving-and-responding */
export const Interaction = v.object({
  id: v.string(),
  token: v.string(),
  type: v.number(),
  channel_id: Text,
  guild_id: Text,
  user: v.nullish(User),
  member: v.nullish(v.object({ user: v.nullish(User), nick: Text, roles: Roles })),
  data: v.nullish(v.object({ custom_id: Text })),
  message: v.nullish(v.object({ id: v.string() })),
})
export type Interaction = v.InferOutput<typeof Interaction>

export const Channel = v.object({ id: v.string(), type: v.number(), name: Text, parent_id: Text })
export type Channel = v.InferOutput<typeof Channel>

export const GatewayBot = v.object({
  url: v.string(),
  session_start_limit: v.nullish(v.object({ remaining: v.number(), reset_after: v.number() })),
})
export type GatewayBot = v.InferOutput<typeof GatewayBot>
export const SentId = v.object({ id: v.string() })

/** The body of a failed request. */
export const Failure = v.object({
  message: Text,
  code: v.nullish(v.number()),
  retry_after: v.nullish(v.number()),
  global: v.nullish(v.boolean()),
})

/** The last message of a channel that is dealt with, as it is stored. */
const LastMessage = v.object({
  channel: v.string(),
  guild: Text,
  id: v.pipe(v.string(), v.regex(/^\d{1,20}$/)),
})
export type LastMessage = v.InferOutput<typeof LastMessage>
export const LastMessages = v.array(LastMessage)
