import * as v from 'valibot'

/** Only the fields that are read. Source: https://docs.discourse.org (looked up in November 2026) */
const Id = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const Text = v.nullish(v.string())
/** Those of the forum itself, such as its robot, are negative. */
const UserId = v.pipe(v.number(), v.safeInteger())

/** `category_id` and `topic_title` are in lists only. */
export const Post = v.object({
  id: Id,
  topic_id: Id,
  post_number: Id,
  post_type: v.nullish(v.number(), 1),
  user_id: v.nullish(UserId),
  username: v.string(),
  name: Text,
  created_at: v.string(),
  raw: v.string(),
  version: v.nullish(v.number(), 1),
  reply_to_post_number: v.nullish(Id),
  reply_to_user: v.nullish(v.object({ username: Text })),
  category_id: v.nullish(Id),
  topic_title: Text,
  hidden: v.nullish(v.boolean()),
  user_deleted: v.nullish(v.boolean()),
  deleted_at: Text,
})
export type Post = v.InferOutput<typeof Post>
export const PostId = v.object({ id: Id })

export const LatestPosts = v.object({ latest_posts: v.array(v.unknown()) })
export const PrivatePosts = v.object({ private_posts: v.array(v.unknown()) })

const Named = v.object({ name: v.string() })
export const Topic = v.object({
  title: Text,
  archetype: Text,
  category_id: v.nullish(Id),
  details: v.nullish(
    v.object({
      allowed_users: v.nullish(v.array(v.object({ username: v.string() })), []),
      allowed_groups: v.nullish(v.array(Named), []),
    }),
  ),
})
export type Topic = v.InferOutput<typeof Topic>

export const User = v.object({
  user: v.object({ id: Id, username: v.string(), groups: v.nullish(v.array(Named), []) }),
})
export interface Bot {
  readonly id: number
  readonly username: string
  readonly groups: readonly string[]
}

/** A post that somebody has to approve first has no id yet. */
export const Sent = v.union([
  v.object({ id: Id, topic_id: Id, post_number: Id }),
  v.object({ action: v.literal('enqueued') }),
])
export const Edited = v.object({ post: PostId })
export const Upload = v.object({ short_url: v.pipe(v.string(), v.startsWith('upload://')), original_filename: Text })
export const Failure = v.object({
  errors: v.nullish(v.array(v.string()), []),
  error_type: Text,
  extras: v.nullish(v.object({ wait_seconds: v.nullish(v.number()) })),
})

/** The body of a request to the webhook. The post in it is read again, as the bot may see it. */
export const Hook = v.object({ post: v.nullish(v.object({ id: Id })) })
