import * as v from 'valibot'

/** Only the fields that are read. Source: https://developer.rocket.chat/apidocs (looked up in November 2026) */
const Text = v.nullish(v.string())
const Id = v.pipe(v.string(), v.minLength(1), v.maxLength(255))

/** Milliseconds: a text in answers, and an object in frames of the WebSocket. */
const Time = v.pipe(
  v.union([v.string(), v.object({ $date: v.number() })]),
  v.transform((time) => (typeof time === 'string' ? Date.parse(time) : time.$date) || 0),
)

const User = v.object({ _id: Id, username: Text, name: Text })
export const Me = v.object({ _id: Id, username: v.string() })
export type Me = v.InferOutput<typeof Me>

export const File = v.object({ _id: Id, name: Text, type: Text, size: v.nullish(v.number()) })
export type File = v.InferOutput<typeof File>

export const Message = v.object({
  _id: Id,
  rid: Id,
  msg: v.nullish(v.string(), ''),
  /** Of a server of the federation, which may choose any; `_updatedAt` is of this one. */
  ts: Time,
  _updatedAt: v.nullish(Time),
  u: User,
  /** Of notices of the server, such as that of a new member, and of encrypted messages. */
  t: Text,
  /** The first message of the thread. */
  tmid: Text,
  editedAt: v.nullish(Time),
  alias: Text,
  bot: v.nullish(v.unknown()),
  mentions: v.nullish(v.array(v.object({ _id: Id }))),
  files: v.nullish(v.array(File)),
  file: v.nullish(File),
})
export type Message = v.InferOutput<typeof Message>

/** `d` is a direct message, of two people or of more; `c` and `p` are channels. */
export const Room = v.object({
  _id: Id,
  t: v.string(),
  name: Text,
  fname: Text,
  usersCount: v.nullish(v.number()),
  usernames: v.nullish(v.array(v.unknown())),
  _updatedAt: v.nullish(Time),
  lm: v.nullish(Time),
})
export type Room = v.InferOutput<typeof Room>
export const RoomList = v.object({ update: v.array(v.unknown()) })
export const RoomInfo = v.object({ room: Room })

export const Changes = v.object({ result: v.object({ updated: v.array(v.unknown()) }) })
export const Found = v.object({ message: v.object({ _id: Id, u: v.object({ _id: Id }) }) })
/** Without the message when the server has one with this id. */
export const Sent = v.object({ success: v.literal(true), message: v.nullish(v.object({ _id: Id })) })
export const Done = v.object({ success: v.literal(true) })
export const Upload = v.object({ file: v.object({ _id: Id }) })

export const Failure = v.object({
  success: v.nullish(v.boolean()),
  status: v.nullish(v.string()),
  error: Text,
  errorType: Text,
  message: Text,
})

const Problem = v.nullish(
  v.object({ error: v.nullish(v.union([v.string(), v.number()])), reason: Text, message: Text }),
)
/** A frame of the WebSocket. The first one has no `msg`. */
export const Frame = v.object({
  msg: Text,
  id: Text,
  collection: Text,
  error: Problem,
  fields: v.nullish(v.object({ args: v.nullish(v.array(v.unknown())) })),
})
export type Frame = v.InferOutput<typeof Frame>
/** What comes with a message. */
export const Place = v.object({ roomParticipant: v.nullish(v.boolean()), roomType: Text, roomName: Text })
export type Place = v.InferOutput<typeof Place>
