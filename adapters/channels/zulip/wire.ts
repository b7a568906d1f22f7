import * as v from 'valibot'

/** Only the fields that are read. Source: https://zulip.com/api/ (looked up in November 2026) */
const Id = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

export const User = v.object({ user_id: Id, full_name: v.string(), email: v.string() })
export type User = v.InferOutput<typeof User>

/** `display_recipient` is the name of the channel, or everybody in a direct message, the bot included. */
export const Message = v.object({
  id: Id,
  type: v.string(),
  sender_id: Id,
  sender_full_name: v.string(),
  sender_email: v.string(),
  sender_realm_str: v.nullish(v.string()),
  stream_id: v.nullish(Id),
  subject: v.nullish(v.string(), ''),
  display_recipient: v.union([v.string(), v.array(v.object({ id: Id, full_name: v.nullish(v.string()) }))]),
  content: v.string(),
  timestamp: v.number(),
})
export type Message = v.InferOutput<typeof Message>

export const Flags = v.array(v.string())

export const Queue = v.object({
  queue_id: v.string(),
  last_event_id: v.number(),
  event_queue_longpoll_timeout_seconds: v.optional(v.pipe(v.number(), v.minValue(1), v.maxValue(600)), 90),
})
export type Queue = v.InferOutput<typeof Queue>

const Event = v.looseObject({ id: v.number(), type: v.string() })
export const Events = v.object({ events: v.array(Event) })
export type Event = v.InferOutput<typeof Event>

export const Posted = v.object({ message: Message, flags: v.optional(Flags, []) })
/** Also sent when a message moves to another topic, and when the server adds a preview. */
export const Changed = v.object({
  message_id: Id,
  user_id: v.nullish(Id),
  content: v.nullish(v.string()),
  rendering_only: v.nullish(v.boolean()),
})
/** A message as it is listed has its flags in it. */
export const Listed = v.intersect([Message, v.object({ flags: v.optional(Flags, []) })])
export const MessageList = v.object({ messages: v.array(v.unknown()), found_newest: v.optional(v.boolean(), true) })
export const OneUser = v.object({ user: v.object({ is_bot: v.nullish(v.boolean()) }) })
export const One = v.object({ message: Listed })

export const Sent = v.object({ id: Id })
export const Done = v.object({ result: v.literal('success') })
/** `uri` is the field of servers before 9.0. */
export const Upload = v.union([v.object({ url: v.string() }), v.object({ uri: v.string() })])
export const Link = v.object({ url: v.string() })
export const Failure = v.object({
  msg: v.string(),
  code: v.nullish(v.string()),
  'retry-after': v.nullish(v.number()),
})
