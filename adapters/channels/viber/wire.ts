import * as v from 'valibot'

/** Only the fields that are read. Source: https://developers.viber.com/docs/api/rest-bot-api/ (looked up in November 2026) */

/** A number of 64 bits, as its digits. */
const MessageToken = v.pipe(v.string(), v.regex(/^\d{1,20}$/))
const Sender = v.object({ id: v.pipe(v.string(), v.minLength(1)), name: v.nullish(v.string()) })
const Message = v.object({
  type: v.string(),
  text: v.nullish(v.string()),
  media: v.nullish(v.string()),
  file_name: v.nullish(v.string()),
  file_size: v.nullish(v.number()),
  size: v.nullish(v.number()),
  location: v.nullish(v.object({ lat: v.number(), lon: v.number() })),
  contact: v.nullish(v.object({ name: v.nullish(v.string()), phone_number: v.nullish(v.string()) })),
})
export type Message = v.InferOutput<typeof Message>

export const MessageEvent = v.object({
  event: v.literal('message'),
  timestamp: v.number(),
  message_token: MessageToken,
  /** Only in groups. */
  chat_id: v.nullish(v.string()),
  sender: Sender,
  message: Message,
})
export type MessageEvent = v.InferOutput<typeof MessageEvent>

/** A message was not shown: `desc` says why. */
export const FailedEvent = v.object({ event: v.literal('failed'), desc: v.nullish(v.string()) })
export const AnyEvent = v.object({ event: v.string(), timestamp: v.number() })

/** The events that are asked for. Who read what is not of interest. */
export const EVENT_TYPES = ['message', 'failed'] as const

const Status = v.literal(0)
export const Account = v.object({
  status: Status,
  id: v.string(),
  name: v.string(),
  uri: v.nullish(v.string()),
  webhook: v.nullish(v.string()),
})
export const Done = v.object({ status: Status })
export const Sent = v.object({ status: Status, message_token: v.number() })
export const Failure = v.object({ status: v.number(), status_message: v.nullish(v.string()) })

/** What `readAttachment` needs. */
export const Reference = v.object({ url: v.string() })
