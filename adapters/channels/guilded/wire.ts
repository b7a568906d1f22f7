import * as v from 'valibot'

/**
 * Only the fields that are read. Source: https://github.com/shayypy/guilded.py, as the documents of Guilded are gone
 * (looked up in November 2026)
 */
const Text = v.nullish(v.string())

export const User = v.object({ id: v.string(), name: v.string(), type: Text })
export type User = v.InferOutput<typeof User>
export const Me = v.object({ user: User })
export const Member = v.object({ user: User, nickname: Text, roleIds: v.nullish(v.array(v.number()), []) })
export type Member = v.InferOutput<typeof Member>
export const MemberAnswer = v.object({ member: Member })

/** A message without a server is a direct one. */
export const Message = v.object({
  id: v.string(),
  type: Text,
  serverId: Text,
  channelId: v.string(),
  content: v.nullish(v.string(), ''),
  createdAt: v.string(),
  createdBy: v.string(),
  createdByWebhookId: Text,
  replyMessageIds: v.nullish(v.array(v.string()), []),
  mentions: v.nullish(v.object({ users: v.nullish(v.array(v.object({ id: v.string() })), []) })),
})
export type Message = v.InferOutput<typeof Message>
export const MessageEvent = v.object({ serverId: Text, message: Message })

/** A frame of the events. `s` is its place among those that are sent again after a lost connection. */
export const Frame = v.object({ op: v.number(), t: Text, s: Text, d: v.optional(v.unknown()) })
export type Frame = v.InferOutput<typeof Frame>
export const Welcome = v.object({
  /** Within bounds: a timer of no time, or of more than a month, would send pings without a pause. */
  heartbeatIntervalMs: v.pipe(v.number(), v.toMinValue(1000), v.toMaxValue(60_000)),
  lastMessageId: Text,
})

export const Sent = v.object({ message: v.object({ id: v.string() }) })
export const Failure = v.object({ code: Text, message: Text })
