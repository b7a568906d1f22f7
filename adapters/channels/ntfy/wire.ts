import * as v from 'valibot'

const Attachment = v.object({
  name: v.optional(v.string(), 'attachment'),
  url: v.string(),
  type: v.optional(v.string(), 'application/octet-stream'),
  size: v.optional(v.number()),
})
export type Attachment = v.InferOutput<typeof Attachment>

/** A line of the stream: `open`, `keepalive`, `poll_request` or `message`. */
export const Line = v.object({
  id: v.string(),
  time: v.number(),
  event: v.string(),
  topic: v.string(),
  title: v.optional(v.string()),
  message: v.optional(v.string(), ''),
  tags: v.optional(v.array(v.string()), []),
  attachment: v.optional(Attachment),
})
export type Line = v.InferOutput<typeof Line>

export const Published = v.object({ id: v.string() })
export const Access = v.object({ success: v.boolean() })
export const Failure = v.object({ code: v.number(), http: v.number(), error: v.optional(v.string(), '') })
