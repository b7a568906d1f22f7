import * as v from 'valibot'

/** Only the fields that are read. Source: https://docs.slack.dev/reference/events/message */
const Text = v.nullish(v.string())

export const File = v.object({
  id: v.string(),
  name: Text,
  mimetype: Text,
  size: v.nullish(v.number()),
  mode: Text,
})
export type File = v.InferOutput<typeof File>

const Content = {
  user: Text,
  bot_id: Text,
  text: Text,
  ts: Text,
  thread_ts: Text,
  files: v.nullish(v.array(File)),
}
export const Event = v.object({
  ...Content,
  type: v.string(),
  subtype: Text,
  channel: Text,
  channel_type: Text,
  parent_user_id: Text,
  message: v.nullish(v.object({ ...Content, subtype: Text, parent_user_id: Text })),
  previous_message: v.nullish(v.object({ text: Text })),
})
export type Event = v.InferOutput<typeof Event>

/** What the Events API sends, and what is in an envelope of Socket Mode. */
export const EventCallback = v.object({
  type: v.string(),
  challenge: Text,
  team_id: Text,
  event: v.nullish(v.unknown()),
})

/** The press of a button. Source: https://docs.slack.dev/reference/interaction-payloads/block_actions-payload */
export const Interaction = v.object({
  type: v.string(),
  user: v.object({ id: v.string(), name: Text, username: Text }),
  team: v.nullish(v.object({ id: Text })),
  channel: v.nullish(v.object({ id: v.string(), name: Text })),
  message: v.nullish(v.object({ ts: v.string(), thread_ts: Text })),
  actions: v.nullish(v.array(v.object({ action_id: v.string(), action_ts: v.string(), value: Text })), []),
})
export type Interaction = v.InferOutput<typeof Interaction>

export const SlashCommand = v.object({
  command: v.string(),
  text: Text,
  user_id: v.string(),
  user_name: Text,
  channel_id: v.string(),
  team_id: Text,
  trigger_id: v.string(),
})
export type SlashCommand = v.InferOutput<typeof SlashCommand>

/** A frame of Socket Mode. Source: https://docs.slack.dev/apis/events-api/using-socket-mode */
export const Envelope = v.object({
  type: v.string(),
  envelope_id: Text,
  payload: v.nullish(v.unknown()),
  reason: Text,
})
export type Envelope = v.InferOutput<typeof Envelope>

/** Every answer of the API, with status 200 also when the request failed. */
export const Failure = v.object({
  ok: v.boolean(),
  error: Text,
  needed: Text,
  response_metadata: v.nullish(v.object({ messages: v.nullish(v.array(v.string())) })),
})
export const Identity = v.object({ user_id: v.string(), user: Text, team: Text, bot_id: Text })
export type Identity = v.InferOutput<typeof Identity>
export const Connection = v.object({ url: v.string() })
export const Posted = v.object({ ts: v.string() })
export const Upload = v.object({ upload_url: v.string(), file_id: v.string() })
export const Done = v.object({ ok: v.boolean() })
/** Messages with what apps keep with them. Source: https://docs.slack.dev/messaging/message-metadata */
export const History = v.object({ messages: v.nullish(v.array(v.unknown()), []) })
export const OwnMessage = v.object({
  ts: v.string(),
  metadata: v.object({ event_type: v.string(), event_payload: v.object({ id: v.string() }) }),
})
export const UserInfo = v.object({
  user: v.object({
    name: Text,
    real_name: Text,
    profile: v.nullish(v.object({ display_name: Text, real_name: Text })),
  }),
})
export const FileInfo = v.object({
  file: v.object({ url_private: Text, url_private_download: Text, mimetype: Text }),
})
