import * as v from 'valibot'

/**
 * Only the fields that are read. Sources: https://developers.google.com/workspace/chat/api/reference/rest/v1/Event and
 * https://developers.google.com/workspace/add-ons/concepts/event-objects#chat-event-object (looked up in November 2026)
 */
const Text = v.nullish(v.string())

const User = v.object({ name: v.string(), displayName: Text, email: Text, type: Text })
const Space = v.object({
  name: v.string(),
  displayName: Text,
  type: Text,
  spaceType: Text,
  singleUserBotDm: v.nullish(v.boolean()),
  spaceThreadingState: Text,
})
export type Space = v.InferOutput<typeof Space>

export const Message = v.object({
  name: v.string(),
  sender: v.nullish(User),
  createTime: Text,
  text: Text,
  /** The text without the mentions of the app. */
  argumentText: Text,
  thread: v.nullish(v.object({ name: Text })),
  threadReply: v.nullish(v.boolean()),
  space: v.nullish(Space),
  slashCommand: v.nullish(v.unknown()),
  quotedMessageMetadata: v.nullish(v.object({ name: Text })),
  /** Each is read by itself: one that cannot be read must not hold up the message. */
  annotations: v.nullish(v.array(v.unknown()), []),
  attachment: v.nullish(v.array(v.unknown()), []),
})
export type Message = v.InferOutput<typeof Message>

export const Mention = v.object({
  type: v.literal('USER_MENTION'),
  userMention: v.object({ user: v.object({ type: v.literal('BOT') }) }),
})
/** A file that was uploaded; those of Drive are read with the rights of a person. */
export const Attachment = v.object({
  contentName: Text,
  contentType: Text,
  attachmentDataRef: v.object({
    resourceName: v.pipe(v.string(), v.regex(/^(?!(?:.{0,2000}\/)?\.{1,2}(?:\/|$))[^\s?#\\]{1,2000}$/)),
  }),
})

/** An event of a Chat app. */
export const Event = v.object({
  type: v.string(),
  eventTime: Text,
  message: v.nullish(Message),
  space: v.nullish(Space),
  user: v.nullish(User),
  action: v.nullish(v.object({ parameters: v.nullish(v.array(v.object({ key: Text, value: Text }))) })),
  common: v.nullish(v.object({ parameters: v.nullish(v.record(v.string(), v.unknown())) })),
})
export type Event = v.InferOutput<typeof Event>

/** The same of an app that is a Google Workspace add-on. */
const Payload = v.object({ message: v.nullish(Message), space: v.nullish(Space) })
export const AddOnEvent = v.object({
  chat: v.object({
    eventTime: Text,
    user: v.nullish(User),
    messagePayload: v.nullish(Payload),
    appCommandPayload: v.nullish(Payload),
    buttonClickedPayload: v.nullish(Payload),
  }),
  commonEventObject: v.nullish(v.object({ parameters: v.nullish(v.record(v.string(), v.unknown())) })),
})
export type AddOnEvent = v.InferOutput<typeof AddOnEvent>

export const Sent = v.object({ name: v.string() })
/** Source: https://cloud.google.com/apis/design/errors */
export const Failure = v.object({
  error: v.object({
    message: Text,
    status: Text,
    details: v.nullish(v.array(v.unknown()), []),
  }),
})
export const RetryInfo = v.object({ retryDelay: v.pipe(v.string(), v.regex(/^\d{1,9}(?:\.\d{1,9})?s$/)) })

export const Token = v.object({ access_token: v.string(), expires_in: v.number() })
export const TokenFailure = v.object({ error: v.string(), error_description: Text })
export const Keys = v.object({ keys: v.array(v.unknown()) })
export const Key = v.looseObject({ kid: v.string(), kty: v.string() })
