import * as v from 'valibot'

/**
 * Only the fields that are read. Sources: https://www.reddit.com/dev/api and the answers recorded in the tests of
 * https://github.com/praw-dev/praw (looked up in November 2026).
 */
const Fullname = v.pipe(v.string(), v.regex(/^t[0-9]_[0-9a-z]{1,20}$/))

/** A comment or a private message, as lists of either show it. */
export const Item = v.object({
  kind: v.picklist(['t1', 't4']),
  data: v.object({
    name: Fullname,
    author: v.nullish(v.string()),
    body: v.string(),
    created_utc: v.pipe(v.number(), v.finite()),
    subreddit: v.nullish(v.string()),
    subject: v.nullish(v.string()),
    parent_id: v.nullish(Fullname),
    /** Of a comment in a list of comments; the inbox has the address of the comment instead. */
    link_id: v.nullish(Fullname),
    link_title: v.nullish(v.string()),
    context: v.nullish(v.string()),
    distinguished: v.nullish(v.string()),
  }),
})
export type Item = v.InferOutput<typeof Item>

export const Listing = v.object({
  data: v.object({ children: v.array(v.unknown()), after: v.nullish(v.string()) }),
})

export const Account = v.object({ name: v.pipe(v.string(), v.minLength(1)) })
export type Account = v.InferOutput<typeof Account>
export const Token = v.object({ access_token: v.pipe(v.string(), v.minLength(1)) })

/** Private messages that answer none are accepted without an id. */
export const Sent = v.object({
  json: v.object({
    errors: v.pipe(v.array(v.unknown()), v.maxLength(0)),
    data: v.optional(v.object({ things: v.optional(v.array(v.object({ data: v.object({ name: Fullname }) }))) })),
  }),
})

/** Comes with status 200. */
export const Refused = v.object({
  json: v.object({
    errors: v.pipe(v.array(v.tupleWithRest([v.string(), v.nullish(v.string())], v.unknown())), v.minLength(1)),
    ratelimit: v.optional(v.number()),
  }),
})
export const Failure = v.object({ message: v.optional(v.string()), reason: v.nullish(v.string()) })
export const AuthFailure = v.object({ error: v.union([v.string(), v.number()]), message: v.optional(v.string()) })
