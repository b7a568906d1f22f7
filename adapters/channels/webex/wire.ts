import * as v from 'valibot'

/** Only the fields that are read. Source: https://developer.webex.com/docs/api/v1/messages (looked up in November 2026) */

const Id = v.pipe(v.string(), v.minLength(1), v.maxLength(512))

export const Person = v.object({
  id: Id,
  displayName: v.nullish(v.string(), ''),
  emails: v.nullish(v.array(v.string()), []),
  /** `bot` sees of a space only what mentions it. */
  type: v.nullish(v.string()),
})
export type Person = v.InferOutput<typeof Person>

export const Message = v.object({
  id: Id,
  roomId: Id,
  roomType: v.string(),
  parentId: v.nullish(v.string()),
  personId: Id,
  personEmail: v.nullish(v.string(), ''),
  text: v.nullish(v.string(), ''),
  html: v.nullish(v.string(), ''),
  mentionedPeople: v.nullish(v.array(v.string()), []),
  /** Addresses at the API, which are read with the token. */
  files: v.nullish(v.array(v.string()), []),
  created: v.string(),
  updated: v.nullish(v.string()),
})
export type Message = v.InferOutput<typeof Message>

/** The press of a button on a card. */
export const Action = v.object({
  id: Id,
  messageId: v.nullish(v.string()),
  personId: Id,
  roomId: Id,
  inputs: v.nullish(v.record(v.string(), v.unknown()), {}),
  created: v.string(),
})
export type Action = v.InferOutput<typeof Action>

/** What happened, without the content. */
export const Notification = v.object({
  resource: v.string(),
  event: v.string(),
  /** Who registered the webhook. */
  createdBy: v.nullish(v.string()),
  data: v.object({ id: Id, personId: v.nullish(v.string()) }),
})

export const Room = v.object({ id: Id, type: v.nullish(v.string()), title: v.nullish(v.string(), '') })
/** Each is read by itself: one that cannot be read must not hold up the others. */
export const List = v.object({ items: v.array(v.unknown()) })
export const ActiveRoom = v.object({ id: Id, type: v.string(), lastActivity: v.string() })
export const Webhook = v.object({ id: Id, name: v.string(), resource: v.string(), event: v.string() })

export const Failure = v.object({
  message: v.nullish(v.string()),
  errors: v.nullish(v.array(v.object({ description: v.nullish(v.string()) }))),
})

/** What `readAttachment` needs. */
export const Reference = v.object({ url: v.string() })
