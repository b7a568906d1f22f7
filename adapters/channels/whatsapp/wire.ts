import * as v from 'valibot'

// The fields of the Graph API that are read: https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks

const Media = v.object({
  id: v.string(),
  mime_type: v.optional(v.string(), 'application/octet-stream'),
  caption: v.optional(v.string()),
  filename: v.optional(v.string()),
})
export type Media = v.InferOutput<typeof Media>

const Choice = v.object({ id: v.string(), title: v.optional(v.string()) })

export const Message = v.object({
  id: v.string(),
  from: v.string(),
  timestamp: v.string(),
  type: v.string(),
  context: v.optional(
    v.object({
      id: v.optional(v.string()),
      forwarded: v.optional(v.boolean()),
      frequently_forwarded: v.optional(v.boolean()),
    }),
  ),
  text: v.optional(v.object({ body: v.string() })),
  image: v.optional(Media),
  audio: v.optional(Media),
  video: v.optional(Media),
  document: v.optional(Media),
  sticker: v.optional(Media),
  location: v.optional(v.object({ latitude: v.number(), longitude: v.number(), name: v.optional(v.string()) })),
  button: v.optional(v.object({ payload: v.optional(v.string()), text: v.optional(v.string(), '') })),
  interactive: v.optional(v.object({ button_reply: v.optional(Choice), list_reply: v.optional(Choice) })),
})
export type Message = v.InferOutput<typeof Message>

const Contact = v.object({ wa_id: v.string(), profile: v.optional(v.object({ name: v.optional(v.string()) })) })
export type Contact = v.InferOutput<typeof Contact>

const Status = v.object({
  id: v.string(),
  status: v.string(),
  errors: v.optional(v.array(v.object({ code: v.number(), title: v.optional(v.string(), '') })), []),
})

const Value = v.object({
  metadata: v.object({ phone_number_id: v.string() }),
  contacts: v.optional(v.array(Contact), []),
  /** Each is read by itself: one that cannot be read must not hold up the others. */
  messages: v.optional(v.array(v.unknown()), []),
  statuses: v.optional(v.array(Status), []),
})
const Change = v.object({ field: v.string(), value: v.unknown() })
export const Notification = v.object({
  object: v.literal('whatsapp_business_account'),
  entry: v.array(v.object({ changes: v.optional(v.array(Change), []) })),
})
export const ChangeValue = Value
export type ChangeValue = v.InferOutput<typeof Value>

export const Sent = v.object({ messages: v.tupleWithRest([v.object({ id: v.string() })], v.unknown()) })
export const Uploaded = v.object({ id: v.string() })
export const MediaAddress = v.object({ url: v.string() })
export const Phone = v.object({ display_phone_number: v.string(), verified_name: v.optional(v.string()) })
export const Done = v.object({ success: v.boolean() })
