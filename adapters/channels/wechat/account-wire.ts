import * as v from 'valibot'

/**
 * Only the fields that are read. Source: https://developers.weixin.qq.com/doc/offiaccount/ (looked up in November 2026)
 */
const Text = v.optional(v.pipe(v.string(), v.maxLength(100_000)), '')
const Name = v.pipe(v.string(), v.minLength(1), v.maxLength(128))

/** A message, from XML: every value is a text. Events have no `MsgId`. */
export const Message = v.object({
  FromUserName: Name,
  CreateTime: v.pipe(v.string(), v.regex(/^\d{1,16}$/)),
  MsgType: v.string(),
  MsgId: v.optional(v.pipe(v.string(), v.regex(/^\d{1,64}$/))),
  Content: Text,
  MediaId: v.optional(v.pipe(v.string(), v.maxLength(1000)), ''),
  Format: v.optional(v.pipe(v.string(), v.maxLength(32)), ''),
  Recognition: Text,
  Location_X: v.optional(v.pipe(v.string(), v.maxLength(64)), ''),
  Location_Y: v.optional(v.pipe(v.string(), v.maxLength(64)), ''),
  Label: Text,
  Title: Text,
  Url: Text,
})
export type Message = v.InferOutput<typeof Message>

export const Token = v.object({ access_token: v.pipe(v.string(), v.minLength(1)), expires_in: v.number() })
export const Done = v.object({ errcode: v.literal(0) })
export const Uploaded = v.object({ media_id: v.string() })
export const VideoAddress = v.object({ video_url: v.string() })
export const Failure = v.object({ errcode: v.number(), errmsg: v.nullish(v.string(), '') })
