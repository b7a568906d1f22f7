import * as v from 'valibot'

/** Only the fields that are read. Source: https://docs.flock.com/display/flockos/Events (looked up in November 2026) */
const Text = v.nullish(v.string())

export const Message = v.object({
  from: v.string(),
  uid: Text,
  id: Text,
  text: Text,
  timestamp: v.nullish(v.unknown()),
  /** Each is read by itself: one that cannot be read must not hold up the message. */
  attachments: v.nullish(v.array(v.unknown()), []),
})
/** What somebody wrote to the bot. */
export const Received = v.object({ name: v.literal('chat.receiveMessage'), userId: v.string(), message: Message })
export type Received = v.InferOutput<typeof Received>

export const SlashCommand = v.object({
  name: v.literal('client.slashCommand'),
  userId: v.string(),
  userName: Text,
  chat: v.string(),
  chatName: Text,
  command: v.string(),
  text: Text,
})
export type SlashCommand = v.InferOutput<typeof SlashCommand>

export const Attachment = v.object({ downloads: v.array(v.unknown()) })
export const Download = v.object({
  src: v.pipe(v.string(), v.regex(/^https?:\/\//i), v.maxLength(2000)),
  filename: Text,
  mime: Text,
  size: v.nullish(v.unknown()),
})

export const Event = v.looseObject({ name: v.string(), userId: v.string() })
export const Sent = v.object({ uid: v.string() })
/** Source: https://docs.flock.com/display/flockos/Methods */
export const Failure = v.object({ error: v.string(), description: Text })
