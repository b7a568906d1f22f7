import * as v from 'valibot'

/**
 * Only the fields that are read. Source: docs/bots.md, docs/chat.md and docs/conversation.md of
 * github.com/nextcloud/spreed (looked up in November 2026)
 */
const Text = v.nullish(v.string(), '')
const Id = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
/** A number in some places, and its digits in others. */
const LooseId = v.pipe(v.union([v.pipe(v.string(), v.minLength(1), v.maxLength(255)), Id]), v.transform(String))
const Token = v.pipe(v.string(), v.regex(/^[a-z0-9]{1,32}$/i))

/** An empty list is how PHP writes an object without fields. */
const empty = <T>(value: T) =>
  v.pipe(
    v.array(v.unknown()),
    v.transform(() => value),
  )
export const Parameters = v.union([v.record(v.string(), v.unknown()), empty<Record<string, unknown>>({})])
export type Parameters = v.InferOutput<typeof Parameters>

/** What stands for a placeholder in a text. */
export const Parameter = v.object({
  type: v.string(),
  id: LooseId,
  name: v.string(),
  path: Text,
  mimetype: Text,
  size: v.nullish(v.pipe(v.union([v.number(), v.string()]), v.transform(Number))),
})
export type Parameter = v.InferOutput<typeof Parameter>

/** `users/ada`, `guests/…`, `bots/…` */
const Actor = v.object({ type: v.string(), id: v.pipe(v.string(), v.regex(/^\w{1,64}\/.{1,255}$/)), name: Text })
const Note = v.object({ id: LooseId, name: Text, content: v.string() })

/** A request of the server to the webhook, in the vocabulary of Activity Streams. */
export const Activity = v.object({ type: v.string() })
export const Created = v.object({
  type: v.literal('Create'),
  actor: Actor,
  object: v.object({
    ...Note.entries,
    inReplyTo: v.nullish(v.object({ actor: Actor, object: v.object({ id: LooseId }) })),
  }),
  target: v.object({ id: Token, name: Text }),
})
export type Created = v.InferOutput<typeof Created>
/** The content of a note is JSON in a text. */
export const Content = v.object({ message: v.string(), parameters: v.nullish(Parameters, {}) })

const Parent = v.object({ id: Id, actorType: Text, actorId: Text })
const message = {
  id: Id,
  actorType: v.string(),
  actorId: v.string(),
  actorDisplayName: Text,
  timestamp: v.number(),
  /** What happened, for notices of the server. */
  systemMessage: Text,
  message: v.string(),
  messageParameters: v.nullish(Parameters, {}),
  referenceId: Text,
}
const Written = v.object({ ...message, parent: v.nullish(v.unknown()) })
export type Message = v.InferOutput<typeof Written>
export const Message = Written
export const ParentMessage = Parent
/** Of one that cannot be read its id is needed still. */
export const MessageList = v.array(v.looseObject({ id: Id }))

/** 1 is of two people, 4 has the news of the app, 6 is a note to oneself. */
export const Room = v.object({
  token: Token,
  type: v.number(),
  displayName: Text,
  lastActivity: v.nullish(v.number(), 0),
  lastMessage: v.nullish(v.union([v.object({ id: Id }), empty(undefined)])),
})
export type Room = v.InferOutput<typeof Room>

const answer = <S extends v.GenericSchema>(data: S) =>
  v.object({ ocs: v.object({ meta: v.object({ status: v.literal('ok') }), data }) })
export const Done = answer(v.unknown())
export const Me = answer(v.object({ id: v.string() }))
export const RoomList = answer(v.array(v.unknown()))
export const Messages = answer(MessageList)
export const Sent = answer(v.object({ id: Id }))
export const Capabilities = answer(v.object({ capabilities: v.object({ spreed: v.nullish(v.unknown()) }) }))

export const Failure = v.object({ ocs: v.object({ meta: v.object({ message: v.nullish(v.string()) }) }) })
