import * as v from 'valibot'

/** Only the fields that are read. Source: https://developer.work.weixin.qq.com/document/ (looked up in November 2026) */
const Text = v.nullish(v.string())

/** A frame of the long connection: a message, an event, or the answer to a request. */
export const Frame = v.object({
  cmd: Text,
  headers: v.object({ req_id: v.string() }),
  body: v.nullish(v.unknown()),
  errcode: v.nullish(v.number()),
  errmsg: Text,
})
export type Frame = v.InferOutput<typeof Frame>

/** A file that is kept encrypted, for five minutes. */
export const Media = v.object({ url: v.string(), aeskey: Text, filename: Text })
export type Media = v.InferOutput<typeof Media>
const TextContent = v.object({ content: v.nullish(v.string(), '') })

/** A message to the robot, as it comes over the long connection. */
export const BotMessage = v.object({
  msgid: v.string(),
  aibotid: Text,
  chatid: Text,
  chattype: v.string(),
  from: v.object({ userid: v.string() }),
  create_time: v.nullish(v.number()),
  msgtype: v.string(),
  text: v.nullish(TextContent),
  /** What was said. */
  voice: v.nullish(TextContent),
  image: v.nullish(Media),
  file: v.nullish(Media),
  video: v.nullish(Media),
  mixed: v.nullish(v.object({ msg_item: v.array(v.unknown()) })),
})
export type BotMessage = v.InferOutput<typeof BotMessage>
export const MixedItem = v.object({ text: v.nullish(TextContent), image: v.nullish(Media) })
export const BotEvent = v.object({ event: v.object({ eventtype: v.string() }) })
export const UploadStarted = v.object({ upload_id: v.string() })
export const Uploaded = v.object({ media_id: v.string() })

/** What is in the callback of an application; the numbers are texts. */
export const AppMessage = v.object({
  ToUserName: v.string(),
  FromUserName: v.string(),
  CreateTime: v.string(),
  MsgType: v.string(),
  MsgId: Text,
  AgentID: Text,
  Content: Text,
  MediaId: Text,
  Format: Text,
  Location_X: Text,
  Location_Y: Text,
  Label: Text,
  Title: Text,
  Url: Text,
})
export type AppMessage = v.InferOutput<typeof AppMessage>

/** Every answer of the API of applications has status 200. */
export const Failure = v.object({ errcode: v.number(), errmsg: Text })
export const Token = v.object({ access_token: v.string(), expires_in: v.number() })
/** A message can fail for the person it is for, with the code of a success. */
export const AppSent = v.object({ errcode: v.literal(0), msgid: Text, invaliduser: Text, unlicenseduser: Text })
