import * as v from 'valibot'

/** Only the fields that are read. Source: https://developers.line.biz/en/reference/messaging-api/ (looked up in November 2026) */

const Mentionee = v.object({ index: v.number(), length: v.number(), isSelf: v.nullish(v.boolean()) })
const Message = v.object({
  id: v.string(),
  type: v.string(),
  text: v.nullish(v.string()),
  mention: v.nullish(v.object({ mentionees: v.array(Mentionee) })),
  quoteToken: v.nullish(v.string()),
  quotedMessageId: v.nullish(v.string()),
  /** Files of `external` are kept by somebody else. */
  contentProvider: v.nullish(v.object({ type: v.string(), originalContentUrl: v.nullish(v.string()) })),
  fileName: v.nullish(v.string()),
  fileSize: v.nullish(v.number()),
  keywords: v.nullish(v.array(v.string())),
  title: v.nullish(v.string()),
  latitude: v.nullish(v.number()),
  longitude: v.nullish(v.number()),
})
export type Message = v.InferOutput<typeof Message>

/** People who did not agree to be known to bots have no `userId` in groups. */
const Source = v.object({
  type: v.string(),
  userId: v.nullish(v.string()),
  groupId: v.nullish(v.string()),
  roomId: v.nullish(v.string()),
})
export type Source = v.InferOutput<typeof Source>

export const Event = v.object({
  type: v.string(),
  /** `standby`: another program answers this chat. */
  mode: v.nullish(v.string()),
  timestamp: v.number(),
  webhookEventId: v.string(),
  source: v.nullish(Source),
  replyToken: v.nullish(v.string()),
  message: v.nullish(Message),
  postback: v.nullish(v.object({ data: v.string() })),
})
export type Event = v.InferOutput<typeof Event>

/** Each event is read by itself: one that cannot be read must not hold up the others. */
export const Callback = v.object({ destination: v.string(), events: v.array(v.unknown()) })

export const Bot = v.object({ userId: v.string(), basicId: v.string(), displayName: v.string() })
export const Sent = v.object({ sentMessages: v.tupleWithRest([v.object({ id: v.string() })], v.unknown()) })
export const Profile = v.object({ displayName: v.string() })
export const Group = v.object({ groupName: v.string() })
export const Done = v.object({})
export const Failure = v.object({
  message: v.string(),
  details: v.nullish(v.array(v.object({ message: v.nullish(v.string()), property: v.nullish(v.string()) }))),
  sentMessages: v.nullish(v.array(v.object({ id: v.string() }))),
})

/** What a message has for its reply. The token of the reply is good until `replyBy`, in milliseconds. */
export const ReplyContext = v.object({
  messageId: v.string(),
  quoteToken: v.optional(v.string()),
  replyToken: v.optional(v.string()),
  replyBy: v.number(),
})
export type ReplyContext = v.InferOutput<typeof ReplyContext>
