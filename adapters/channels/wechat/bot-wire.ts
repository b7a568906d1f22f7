import * as v from 'valibot'

/**
 * Only the fields that are read. Source: docs/protocol.md and src/api/types.ts of
 * https://github.com/Tencent/openclaw-weixin (looked up in November 2026)
 */
const Text = v.pipe(v.string(), v.maxLength(100_000))
const Param = v.pipe(v.string(), v.maxLength(2500))
const Media = v.object({
  encrypt_query_param: v.nullish(Param),
  /** Base64 of 16 bytes, or of 32 hexadecimal digits. */
  aes_key: v.nullish(v.pipe(v.string(), v.maxLength(100))),
})
export type Media = v.InferOutput<typeof Media>

export const ITEM = { text: 1, image: 2, voice: 3, file: 4, video: 5 } as const
/** Of a person. */
export const USER_MESSAGE = 1
export const BOT_MESSAGE = 2
export const FINISHED = 2

const itemEntries = {
  type: v.number(),
  text_item: v.nullish(v.object({ text: v.nullish(Text) })),
  /** `aeskey` is hexadecimal, and goes before that of the media. */
  image_item: v.nullish(v.object({ media: v.nullish(Media), aeskey: v.nullish(v.pipe(v.string(), v.maxLength(100))) })),
  voice_item: v.nullish(
    v.object({ media: v.nullish(Media), encode_type: v.nullish(v.number()), text: v.nullish(Text) }),
  ),
  file_item: v.nullish(
    v.object({ media: v.nullish(Media), file_name: v.nullish(v.string()), len: v.nullish(v.string()) }),
  ),
  video_item: v.nullish(v.object({ media: v.nullish(Media) })),
}
const Item = v.object({
  ...itemEntries,
  ref_msg: v.nullish(v.object({ title: v.nullish(Text), message_item: v.nullish(v.object(itemEntries)) })),
})
export type Item = v.InferOutput<typeof Item>

export const Message = v.object({
  from_user_id: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  message_type: v.nullish(v.number()),
  /** Of 64 bits: JSON has fewer. */
  message_id: v.nullish(v.number()),
  seq: v.nullish(v.number()),
  client_id: v.nullish(v.pipe(v.string(), v.maxLength(256))),
  group_id: v.nullish(v.string()),
  create_time_ms: v.nullish(v.number()),
  context_token: v.nullish(v.pipe(v.string(), v.maxLength(10_000))),
  item_list: v.nullish(v.pipe(v.array(Item), v.maxLength(100)), []),
})
export type Message = v.InferOutput<typeof Message>

const Ret = v.object({ ret: v.literal(0) })
/** Zeros may be left out, but nothing else may be there: a page of a proxy is no success. */
export const Done = v.union([Ret, v.strictObject({ errmsg: v.optional(v.string()) })])
export const Updates = v.pipe(
  v.object({
    ret: v.nullish(v.number()),
    /** Each is read by itself: one that cannot be read must not hold up the others. */
    msgs: v.nullish(v.array(v.unknown()), []),
    get_updates_buf: v.nullish(v.string(), ''),
    longpolling_timeout_ms: v.nullish(v.number(), 35_000),
  }),
  v.check(({ ret, get_updates_buf: cursor }) => ret != null || cursor !== '', 'neither a result nor a position'),
)
export const BotConfig = v.object({ ret: v.nullish(v.number()), typing_ticket: v.nullish(v.string(), '') })
export const UploadAddress = v.pipe(
  v.object({ upload_param: v.nullish(v.string()), upload_full_url: v.nullish(v.string()) }),
  v.check(({ upload_param: param, upload_full_url: url }) => Boolean(param) || Boolean(url), 'no address'),
)

export const QrCode = v.object({
  qrcode: v.pipe(v.string(), v.minLength(1)),
  qrcode_img_content: v.pipe(v.string(), v.minLength(1), v.maxLength(4000)),
})
export const QrStatus = v.object({
  status: v.string(),
  redirect_host: v.nullish(v.string()),
  bot_token: v.nullish(v.string()),
  ilink_bot_id: v.nullish(v.string()),
  baseurl: v.nullish(v.string()),
})
export type QrStatus = v.InferOutput<typeof QrStatus>

export const Failure = v.object({
  ret: v.nullish(v.number(), 0),
  errcode: v.nullish(v.number(), 0),
  errmsg: v.nullish(v.string(), ''),
})
