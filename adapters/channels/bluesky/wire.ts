import * as v from 'valibot'

/**
 * Only the fields that are read. Source: the lexicons of https://github.com/bluesky-social/atproto (looked up in
 * November 2026).
 */
const Uri = v.pipe(v.string(), v.startsWith('at://'), v.maxLength(1000))
const Cid = v.pipe(v.string(), v.minLength(1), v.maxLength(200))

/** A post, in the version that was seen. */
export const PostRef = v.object({ uri: Uri, cid: Cid })
export type PostRef = v.InferOutput<typeof PostRef>
/** Where a reply stands: below `parent`, in the thread that `root` began. */
export const ReplyRef = v.object({ root: PostRef, parent: PostRef })
export type ReplyRef = v.InferOutput<typeof ReplyRef>

const Byte = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
/** A part of a text, in bytes of its UTF-8, and what it stands for. */
const Facet = v.object({
  index: v.object({ byteStart: Byte, byteEnd: Byte }),
  features: v.array(v.looseObject({ $type: v.string(), did: v.optional(v.string()), uri: v.optional(v.string()) })),
})
export type Facet = v.InferOutput<typeof Facet>

/** A picture of a post. Other posts, pages and videos can stand in its place. */
const Image = v.object({
  image: v.object({ ref: v.object({ $link: Cid }) }),
})
const Images = v.pipe(v.array(Image), v.maxLength(20))
/** With pictures alone, or beside a post that is quoted. */
export const Embed = v.union([v.object({ images: Images }), v.object({ media: v.object({ images: Images }) })])

export const Post = v.object({
  text: v.string(),
  facets: v.optional(v.array(Facet), []),
  reply: v.optional(ReplyRef),
  embed: v.optional(v.unknown()),
})
export type Post = v.InferOutput<typeof Post>

export const Notification = v.object({
  uri: Uri,
  cid: Cid,
  author: v.object({ did: v.string(), handle: v.string(), displayName: v.nullish(v.string()) }),
  reason: v.string(),
  record: v.unknown(),
  indexedAt: v.string(),
})
export type Notification = v.InferOutput<typeof Notification>
export const NotificationPage = v.object({ notifications: v.array(v.unknown()), cursor: v.optional(v.string()) })

const Blob = v.looseObject({ $type: v.literal('blob'), ref: v.object({ $link: Cid }) })
export type Blob = v.InferOutput<typeof Blob>
export const Upload = v.object({ blob: Blob })

export const PostList = v.object({ posts: v.array(v.object({ uri: Uri, cid: Cid, record: v.unknown() })) })

export const Account = v.object({ did: v.pipe(v.string(), v.startsWith('did:')), handle: v.string() })
export type Account = v.InferOutput<typeof Account>
const Token = v.pipe(v.string(), v.minLength(1))
export const Tokens = v.object({ ...Account.entries, accessJwt: Token, refreshJwt: Token })
export type Tokens = v.InferOutput<typeof Tokens>

export const Failure = v.object({ error: v.string(), message: v.optional(v.string(), '') })
