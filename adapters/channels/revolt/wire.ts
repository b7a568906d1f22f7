import * as v from 'valibot'

/**
 * Only the fields that are read. Source: https://github.com/stoatchat/stoatchat, crates/core/models and
 * crates/core/database/src/events (looked up in November 2026)
 */
const Text = v.nullish(v.string())
const Texts = v.nullish(v.array(v.string()), [])

export const User = v.object({
  _id: v.string(),
  username: v.string(),
  discriminator: Text,
  display_name: Text,
  bot: v.nullish(v.object({})),
})
export type User = v.InferOutput<typeof User>

export const Member = v.object({
  _id: v.nullish(v.object({ user: Text })),
  nickname: Text,
  roles: v.nullish(v.array(v.string())),
})
export type Member = v.InferOutput<typeof Member>

export const File = v.object({
  _id: v.string(),
  filename: v.string(),
  content_type: Text,
  size: v.nullish(v.number()),
})
export type File = v.InferOutput<typeof File>

/** Lists have messages without their user and member. `system` is set for notices of the server. */
export const Message = v.object({
  _id: v.string(),
  nonce: Text,
  channel: v.string(),
  author: v.string(),
  user: v.nullish(User),
  member: v.nullish(Member),
  webhook: v.nullish(v.object({ name: Text })),
  system: v.nullish(v.unknown()),
  content: v.nullish(v.string(), ''),
  attachments: v.nullish(v.array(File), []),
  edited: Text,
  mentions: Texts,
  replies: Texts,
})
export type Message = v.InferOutput<typeof Message>

/** DirectMessage, Group, TextChannel or SavedMessages. */
export const Channel = v.object({
  _id: v.string(),
  channel_type: v.string(),
  server: Text,
  name: Text,
  last_message_id: Text,
})
export type Channel = v.InferOutput<typeof Channel>

export const Node = v.object({ ws: v.string(), features: v.object({ autumn: v.object({ url: v.string() }) }) })
export const MessageList = v.object({
  messages: v.array(v.unknown()),
  users: v.nullish(v.array(v.unknown()), []),
  members: v.nullish(v.array(v.unknown()), []),
})
export const PlainList = v.array(v.unknown())
export const Nonced = v.object({ _id: v.string(), nonce: Text, author: v.string() })
export const Sent = v.object({ _id: v.string() })
export const Upload = v.object({ id: v.string() })
/** Milliseconds, except for the slow mode of a channel, which counts in seconds. */
export const Failure = v.object({ type: Text, error: Text, permission: Text, retry_after: v.nullish(v.number()) })

/** An event. `Bulk` has several of them. */
export const Event = v.looseObject({ type: v.string() })
export type Event = v.InferOutput<typeof Event>
export const Bulk = v.object({ v: v.array(Event) })
export const Ready = v.object({ channels: v.nullish(v.array(v.unknown()), []) })
export const Problem = v.object({ data: v.nullish(v.object({ type: Text })), error: Text })
export const Update = v.object({
  id: v.string(),
  channel: v.string(),
  data: v.object({ content: Text, edited: Text }),
})
