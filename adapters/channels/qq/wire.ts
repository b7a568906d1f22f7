import * as v from 'valibot'

/**
 * Only the fields that are read. Sources: https://bot.q.qq.com/wiki/develop/api-v2/ and
 * https://github.com/tencent-connect/qqbot-nodejs (looked up in November 2026)
 */
const Text = v.nullish(v.string())
const Flag = v.nullish(v.boolean())

/** In private chats and groups people have an openid that holds for this bot only; elsewhere an id. */
const Author = v.object({ id: Text, user_openid: Text, member_openid: Text, username: Text, bot: Flag })
export type Author = v.InferOutput<typeof Author>

export const Attachment = v.object({
  url: v.string(),
  filename: Text,
  content_type: Text,
  size: v.nullish(v.number()),
  voice_wav_url: Text,
})
export type Attachment = v.InferOutput<typeof Attachment>

const Mention = v.object({ id: Text, member_openid: Text, nickname: Text, username: Text, is_you: Flag })
export type Mention = v.InferOutput<typeof Mention>

/** A message of any of the four kinds of chats. */
export const Message = v.object({
  // It is kept with the chat, as replies name it.
  id: v.pipe(v.string(), v.minLength(1), v.maxLength(1024)),
  author: Author,
  content: v.nullish(v.string(), ''),
  timestamp: Text,
  group_openid: Text,
  channel_id: Text,
  guild_id: Text,
  member: v.nullish(v.object({ nick: Text, roles: v.nullish(v.array(v.string())) })),
  mentions: v.nullish(v.array(Mention), []),
  attachments: v.nullish(v.array(Attachment), []),
  message_reference: v.nullish(v.object({ message_id: Text })),
})
export type Message = v.InferOutput<typeof Message>

/** What is signed must never be mistaken for the body of an event, whose first character is a brace. */
export const Validation = v.object({
  plain_token: v.pipe(v.string(), v.regex(/^[\w-]{1,256}$/)),
  event_ts: v.pipe(v.string(), v.regex(/^\d{1,20}$/)),
})

/** `expires_in` is a number of seconds, or such a number as a text. */
export const Token = v.object({
  access_token: v.pipe(v.string(), v.minLength(1)),
  expires_in: v.pipe(
    v.union([v.number(), v.pipe(v.string(), v.regex(/^\d{1,16}$/))]),
    v.transform(Number),
    v.minValue(1),
  ),
})
export const Gateway = v.object({ url: v.string() })
export const User = v.object({ id: v.string(), username: v.string() })
/** A message that a person has to look at first has no id yet, and comes with a code. */
export const Sent = v.union([v.object({ id: v.string() }), v.object({ code: v.number() })])
export const Upload = v.object({ file_info: v.string() })
export const Failure = v.object({ code: v.nullish(v.number()), err_code: v.nullish(v.number()), message: Text })
