import * as v from 'valibot'

// The fields of the Bot API that are read. Everything else is ignored.

const User = v.object({
  id: v.number(),
  is_bot: v.optional(v.boolean(), false),
  first_name: v.optional(v.string(), ''),
  last_name: v.optional(v.string()),
  username: v.optional(v.string()),
})
export type User = v.InferOutput<typeof User>

const Chat = v.object({
  id: v.number(),
  type: v.picklist(['private', 'group', 'supergroup', 'channel']),
  title: v.optional(v.string()),
  username: v.optional(v.string()),
})
export type Chat = v.InferOutput<typeof Chat>

const Entity = v.object({
  type: v.string(),
  offset: v.number(),
  length: v.number(),
  url: v.optional(v.string()),
  user: v.optional(User),
})
export type Entity = v.InferOutput<typeof Entity>

const File = v.object({
  file_id: v.string(),
  file_size: v.optional(v.number()),
  file_name: v.optional(v.string()),
  mime_type: v.optional(v.string()),
})
export type File = v.InferOutput<typeof File>

const Replied = v.object({
  message_id: v.number(),
  from: v.optional(User),
  forum_topic_created: v.optional(v.unknown()),
})

export const Message = v.object({
  message_id: v.number(),
  date: v.number(),
  edit_date: v.optional(v.number()),
  chat: Chat,
  from: v.optional(User),
  sender_chat: v.optional(Chat),
  message_thread_id: v.optional(v.number()),
  /** In the first message of a supergroup that was a group. */
  migrate_from_chat_id: v.optional(v.number()),
  is_topic_message: v.optional(v.boolean(), false),
  reply_to_message: v.optional(Replied),
  forward_origin: v.optional(v.unknown()),
  /** Of servers before version 7.0 of the interface. */
  forward_date: v.optional(v.number()),
  text: v.optional(v.string()),
  caption: v.optional(v.string()),
  entities: v.optional(v.array(Entity), []),
  caption_entities: v.optional(v.array(Entity), []),
  photo: v.optional(v.array(File), []),
  document: v.optional(File),
  animation: v.optional(File),
  audio: v.optional(File),
  voice: v.optional(File),
  video: v.optional(File),
  video_note: v.optional(File),
  sticker: v.optional(v.object({ ...File.entries, is_video: v.optional(v.boolean(), false) })),
  location: v.optional(v.object({ latitude: v.number(), longitude: v.number() })),
})
export type Message = v.InferOutput<typeof Message>

const CallbackQuery = v.object({
  id: v.string(),
  from: User,
  data: v.optional(v.string()),
  message: v.optional(Message),
})
export type CallbackQuery = v.InferOutput<typeof CallbackQuery>

export const Update = v.object({
  update_id: v.number(),
  message: v.optional(Message),
  edited_message: v.optional(Message),
  channel_post: v.optional(Message),
  callback_query: v.optional(CallbackQuery),
})
export type Update = v.InferOutput<typeof Update>
/** The kinds of updates that are read. */
export const UPDATE_KINDS = ['message', 'edited_message', 'channel_post', 'callback_query'] as const

/** An update whose parts are not known yet: one that cannot be read must not stop those after it. */
export const Numbered = v.looseObject({ update_id: v.number() })

export const Updates = result(v.array(Numbered))
export const Me = result(User)
export const Sent = result(v.object({ message_id: v.number(), chat: v.object({ id: v.number() }) }))
export const FilePath = result(v.object({ file_path: v.string() }))
export const WebhookInfo = result(v.object({ url: v.optional(v.string(), '') }))
export const Done = result(v.unknown())

export const Failure = v.object({
  ok: v.literal(false),
  error_code: v.number(),
  description: v.optional(v.string(), ''),
  parameters: v.optional(
    v.object({ retry_after: v.optional(v.number()), migrate_to_chat_id: v.optional(v.number()) }),
    {},
  ),
})

function result<S extends v.GenericSchema>(schema: S) {
  return v.object({ ok: v.literal(true), result: schema })
}
