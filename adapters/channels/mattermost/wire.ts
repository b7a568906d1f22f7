import * as v from 'valibot'

/** Only the fields that are read. Source: https://developers.mattermost.com/api-documentation/ */
const Text = v.nullish(v.string())
const Count = v.nullish(v.number())

export const User = v.object({ id: v.string(), username: v.string() })
export type User = v.InferOutput<typeof User>

export const FileInfo = v.object({ id: v.string(), name: Text, mime_type: Text, size: Count })
export type FileInfo = v.InferOutput<typeof FileInfo>

/** A switch that is a text in posts of bots, and a boolean in some others. */
const Mark = v.nullish(v.union([v.string(), v.boolean()]))

export const Post = v.object({
  id: v.string(),
  create_at: v.number(),
  update_at: Count,
  edit_at: Count,
  delete_at: Count,
  user_id: v.string(),
  channel_id: v.string(),
  root_id: Text,
  message: v.nullish(v.string(), ''),
  type: Text,
  props: v.nullish(v.object({ from_bot: Mark, from_webhook: Mark, override_username: Text })),
  metadata: v.nullish(v.object({ files: v.nullish(v.array(FileInfo)) })),
})
export type Post = v.InferOutput<typeof Post>

/** D and G are direct messages, of two people and of more; O and P are channels. */
export const Channel = v.object({
  id: v.string(),
  type: v.string(),
  display_name: Text,
  team_id: Text,
  last_post_at: Count,
})
export type Channel = v.InferOutput<typeof Channel>
export const ChannelList = v.array(Channel)

export const PostList = v.object({ order: v.array(v.string()), posts: v.record(v.string(), v.unknown()) })

/** A frame of the WebSocket: an event, or the answer to an action. */
export const Frame = v.object({
  event: Text,
  seq: Count,
  data: v.nullish(v.unknown()),
  status: Text,
  seq_reply: Count,
  error: v.nullish(v.object({ message: Text, id: Text })),
})
export type Frame = v.InferOutput<typeof Frame>

/** What comes with a post. The post and the mentions are JSON in a text. */
export const Posted = v.object({
  post: v.string(),
  channel_type: Text,
  channel_display_name: Text,
  team_id: Text,
  sender_name: Text,
  mentions: Text,
})
export type Posted = v.InferOutput<typeof Posted>
export const Ids = v.array(v.string())

export const Sent = v.object({ id: v.string() })
export const Upload = v.object({ file_infos: v.array(v.object({ id: v.string() })) })
export const Failure = v.object({ message: Text, id: Text })
