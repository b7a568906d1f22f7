import * as v from 'valibot'

/**
 * Only the fields that are read. Source:
 * https://developers.facebook.com/documentation/business-messaging/messenger-platform (looked up in November 2026)
 */

const Party = v.object({ id: v.pipe(v.string(), v.minLength(1)) })
const Attachment = v.object({
  type: v.string(),
  payload: v.nullish(v.object({ url: v.nullish(v.string()), title: v.nullish(v.string()) })),
})
export type Attachment = v.InferOutput<typeof Attachment>

export const Event = v.object({
  sender: Party,
  recipient: Party,
  timestamp: v.number(),
  message: v.nullish(
    v.object({
      mid: v.pipe(v.string(), v.minLength(1)),
      text: v.nullish(v.string()),
      /** What the page itself wrote. */
      is_echo: v.nullish(v.boolean()),
      quick_reply: v.nullish(v.object({ payload: v.string() })),
      reply_to: v.nullish(v.object({ mid: v.nullish(v.string()) })),
      attachments: v.nullish(v.array(Attachment)),
    }),
  ),
  message_edit: v.nullish(v.object({ mid: v.pipe(v.string(), v.minLength(1)), text: v.string() })),
  postback: v.nullish(
    v.object({ mid: v.nullish(v.string()), payload: v.nullish(v.string()), title: v.nullish(v.string()) }),
  ),
})
export type Event = v.InferOutput<typeof Event>

/** Each event is read by itself: one that cannot be read must not hold up the others. */
export const Notification = v.object({
  object: v.literal('page'),
  entry: v.array(v.object({ id: v.string(), messaging: v.nullish(v.array(v.unknown()), []) })),
})

export const Page = v.object({ id: v.string(), name: v.string() })
export const Profile = v.object({ first_name: v.nullish(v.string(), ''), last_name: v.nullish(v.string(), '') })
export const Sent = v.object({ message_id: v.string() })
export const Done = v.object({ recipient_id: v.string() })

/** What `readAttachment` needs. */
export const Reference = v.object({ url: v.string() })
