import * as v from 'valibot'

/** Only the fields that are read. Source: https://docs.joinmastodon.org/api/ (looked up in November 2026) */
const Text = v.nullish(v.string(), '')
/** Numbers on Mastodon, and texts of letters on servers that resemble it. */
const Id = v.pipe(v.string(), v.regex(/^[\w-]{1,64}$/))

export const Account = v.object({
  id: Id,
  username: v.string(),
  /** With the host, unless it is an account of the instance. */
  acct: v.pipe(v.string(), v.regex(/^[^\s@]{1,255}(?:@[^\s@]{1,255})?$/)),
  display_name: Text,
  bot: v.nullish(v.boolean()),
})
export type Account = v.InferOutput<typeof Account>

export const Media = v.object({
  id: Id,
  type: v.string(),
  url: v.nullish(v.string()),
  description: v.nullish(v.string()),
})
export type Media = v.InferOutput<typeof Media>

export const Status = v.object({
  id: Id,
  created_at: v.string(),
  account: Account,
  content: v.string(),
  spoiler_text: Text,
  visibility: v.string(),
  in_reply_to_id: v.nullish(Id),
  media_attachments: v.nullish(v.array(Media), []),
})
export type Status = v.InferOutput<typeof Status>

export const Mention = v.object({ id: Id, status: Status })
/** Of one that cannot be read its id is needed still. */
export const MentionList = v.array(v.looseObject({ id: Id }))

/** The oldest comes first. */
export const Context = v.object({ ancestors: v.array(v.object({ id: Id })) })

export const Instance = v.object({
  domain: Text,
  configuration: v.object({
    urls: v.object({ streaming: v.nullish(v.string()) }),
    media_attachments: v.nullish(v.object({ supported_mime_types: v.nullish(v.array(v.string())) })),
  }),
})
export type Instance = v.InferOutput<typeof Instance>

/** A frame of the stream: an event, or why there is none. The payload is JSON in a text. */
export const Frame = v.object({
  event: v.nullish(v.string()),
  payload: v.nullish(v.unknown()),
  error: v.nullish(v.string()),
})
export const Notified = v.object({ type: v.string() })

export const Sent = v.object({ id: Id })
/** Without an address it is not processed yet. */
export const Upload = v.object({ id: Id, url: v.nullish(v.string()) })
export const Failure = v.object({ error: v.string(), error_description: v.nullish(v.string()) })
