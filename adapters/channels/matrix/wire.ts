import * as v from 'valibot'

/** Only the fields that are read. Source: https://spec.matrix.org/latest/client-server-api/ */
const Text = v.nullish(v.string())

/** An event. What is in `content` is checked where it is read: anybody in a room can send anything. */
export const Event = v.object({
  type: v.string(),
  event_id: Text,
  sender: Text,
  state_key: Text,
  origin_server_ts: v.nullish(v.number()),
  content: v.nullish(v.record(v.string(), v.unknown()), {}),
  unsigned: v.nullish(v.object({ prev_content: v.nullish(v.object({ membership: Text })) })),
})
export type Event = v.InferOutput<typeof Event>
const Events = v.nullish(v.object({ events: v.nullish(v.array(v.unknown()), []) }))

export const JoinedRoom = v.object({
  timeline: v.nullish(
    v.object({
      events: v.nullish(v.array(v.unknown()), []),
      limited: v.nullish(v.boolean()),
      prev_batch: Text,
    }),
  ),
  state: Events,
})
export type JoinedRoom = v.InferOutput<typeof JoinedRoom>
export const InvitedRoom = v.object({ invite_state: Events })
export type InvitedRoom = v.InferOutput<typeof InvitedRoom>

export const SyncAnswer = v.object({
  next_batch: v.string(),
  rooms: v.nullish(
    v.object({
      join: v.nullish(v.record(v.string(), JoinedRoom)),
      invite: v.nullish(v.record(v.string(), InvitedRoom)),
    }),
  ),
})
export type SyncAnswer = v.InferOutput<typeof SyncAnswer>

export const MessagePage = v.object({ chunk: v.array(v.unknown()), end: Text })
export const WhoAmI = v.object({ user_id: v.string() })
export const Login = v.object({ access_token: v.string(), user_id: v.string() })
export const Members = v.object({
  joined: v.record(v.string(), v.object({ display_name: Text })),
})
export const Sent = v.object({ event_id: v.string() })
export const Uploaded = v.object({ content_uri: v.string() })
export const Failure = v.object({ errcode: Text, error: Text, retry_after_ms: v.nullish(v.number()) })

/** The content of a message. */
const Relation = v.object({
  rel_type: Text,
  event_id: Text,
  is_falling_back: v.nullish(v.boolean()),
  'm.in_reply_to': v.nullish(v.object({ event_id: Text })),
})
const Body = {
  msgtype: v.string(),
  body: v.string(),
  filename: Text,
  url: Text,
  info: v.nullish(v.object({ mimetype: Text, size: v.nullish(v.number()) })),
  'm.mentions': v.nullish(v.object({ user_ids: v.nullish(v.array(v.string())) })),
}
export const MessageContent = v.object({
  ...Body,
  'm.relates_to': v.nullish(Relation),
  'm.new_content': v.nullish(v.object(Body)),
})
export type MessageContent = v.InferOutput<typeof MessageContent>
