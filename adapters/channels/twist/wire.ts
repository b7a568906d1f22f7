import * as v from 'valibot'

/**
 * Only the fields that are read. Source: https://developer.twist.com/v3/ and github.com/Doist/twist-sdk-typescript
 * (looked up in November 2026)
 */
const Id = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const Index = v.pipe(v.number(), v.safeInteger(), v.minValue(-1))
const Text = v.nullish(v.string(), '')
const Flag = v.nullish(v.union([v.boolean(), v.number()]))

export const SessionUser = v.object({ id: Id, name: v.string(), default_workspace: v.nullish(Id) })
export type SessionUser = v.InferOutput<typeof SessionUser>
export const User = v.object({ id: Id, name: v.string(), email: Text, bot: Flag })
export type User = v.InferOutput<typeof User>
export const UserList = v.array(v.unknown())

export const Attachment = v.object({
  url: v.string(),
  file_name: v.string(),
  underlying_type: Text,
  file_size: v.nullish(v.number()),
})

const written = {
  id: Id,
  content: v.string(),
  creator: Id,
  posted_ts: v.number(),
  attachments: v.nullish(v.array(v.unknown())),
  /** Of notices, such as that of a new member. */
  system_message: v.nullish(v.unknown()),
}
/** A comment in a thread, or a message in a conversation. */
export const Entry = v.object({ ...written, obj_index: Index })
export type Entry = v.InferOutput<typeof Entry>
/** Of one that cannot be read its place is needed still. */
export const EntryList = v.array(v.looseObject({ obj_index: Index }))

export const Thread = v.object({ ...written, title: v.string(), channel_id: Id })
export type Thread = v.InferOutput<typeof Thread>
export const Conversation = v.object({ id: Id, user_ids: v.array(Id), title: Text })
export type Conversation = v.InferOutput<typeof Conversation>
export const Channel = v.object({ id: Id, name: v.string() })
export type Channel = v.InferOutput<typeof Channel>

export const UnreadThreads = v.array(v.object({ thread_id: Id, channel_id: Id, obj_index: Index }))
export const UnreadConversations = v.array(v.object({ conversation_id: Id, obj_index: Index }))

export const Sent = v.object({ id: Id })
/** The whole of it goes back to the server with the message that has the file. */
export const Upload = v.looseObject({ attachment_id: v.string() })
export const Done = v.unknown()
export const Failure = v.object({ error_code: v.number(), error_string: Text })
