import * as v from 'valibot'

// Only the fields that are read. Sources: go/client/chat_api_doc.go, chat_api_handler.go and
// chat_api_listen_display.go of github.com/keybase/client, and the package keybase-bot 3.6.1 (looked up in November 2026)
const Id = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const ConversationId = v.pipe(v.string(), v.regex(/^[0-9a-f]{8,128}$/))

export const Channel = v.object({
  name: v.string(),
  members_type: v.optional(v.string(), ''),
  topic_type: v.optional(v.string(), 'chat'),
  topic_name: v.optional(v.string(), ''),
})

const Content = v.object({
  type: v.string(),
  text: v.nullish(v.object({ body: v.string(), replyTo: v.nullish(Id) })),
  edit: v.nullish(v.object({ messageID: Id, body: v.string() })),
  attachment: v.nullish(v.object({ object: v.object({ filename: v.string(), title: v.optional(v.string(), '') }) })),
})

export const Message = v.object({
  id: Id,
  conversation_id: ConversationId,
  channel: Channel,
  sender: v.object({ uid: v.pipe(v.string(), v.minLength(1)), username: v.optional(v.string(), '') }),
  sent_at_ms: v.number(),
  content: Content,
  at_mention_usernames: v.nullish(v.array(v.string())),
  is_ephemeral_expired: v.optional(v.boolean(), false),
  bot_info: v.nullish(v.object({ bot_username: v.nullish(v.string()) })),
})
export type Message = v.InferOutput<typeof Message>

/** A line of `keybase chat api-listen`. */
export const Notification = v.object({ type: v.string(), msg: v.optional(v.unknown()), error: v.nullish(v.string()) })

/** Of `keybase status --json`. */
export const Status = v.object({ Username: v.optional(v.string(), ''), LoggedIn: v.optional(v.boolean()) })

// Answers of `keybase chat api`
export const apiAnswer = <S extends v.GenericSchema>(result: S) => v.object({ result })
export const ApiFailure = v.object({ error: v.object({ code: v.optional(v.number(), 0), message: v.string() }) })
export const Sent = v.object({ id: Id })
export const Done = v.looseObject({})
export const Conversations = v.object({
  conversations: v.nullish(v.array(v.object({ id: ConversationId, active_at_ms: v.number() }))),
})
export const Messages = v.object({ messages: v.nullish(v.array(v.object({ msg: v.optional(v.unknown()) }))) })
