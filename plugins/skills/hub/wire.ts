import * as v from 'valibot'
import { withoutUnseen } from '../manifest/unseen.ts'

/** Characters of a text that a hub shows. */
const MAX_TEXT = 1024

/** A text of somebody else: on one line, without what turns it around, cut. */
const shown = v.pipe(
  v.string(),
  v.transform((text) =>
    withoutUnseen(text)
      .replace(/[\p{Cc}\s]+/gu, ' ')
      .trim()
      .slice(0, MAX_TEXT),
  ),
)
const text = v.optional(v.nullable(shown))
const number = v.optional(v.nullable(v.number()))
const Stats = v.fallback(v.object({ downloads: number, stars: number }), {})
const Version = v.optional(v.nullable(v.object({ version: v.pipe(v.string(), v.maxLength(64)) })))
export const SLUG = /^[a-zA-Z0-9](?!.*\.\.)[a-zA-Z0-9._-]{0,199}$/
const Slug = v.pipe(v.string(), v.regex(SLUG))

/** Answers of ClawHub, as its documents say them (`docs/http-api.md` of openclaw/clawhub). */
export const Search = v.object({
  results: v.array(
    v.object({
      slug: v.optional(v.string()),
      displayName: text,
      summary: text,
      version: text,
      score: v.number(),
      updatedAt: number,
      ownerHandle: text,
    }),
  ),
})
const summary = {
  slug: Slug,
  displayName: text,
  summary: text,
  topics: v.fallback(v.array(shown), []),
  stats: Stats,
  createdAt: number,
  updatedAt: number,
}
export const Page = v.object({
  items: v.array(v.object({ ...summary, latestVersion: Version })),
  nextCursor: v.optional(v.nullable(v.string())),
})
export type ListedSkill = v.InferOutput<typeof Page>['items'][number]
export const Detail = v.object({
  skill: v.object(summary),
  latestVersion: Version,
  owner: v.optional(v.nullable(v.object({ handle: text, displayName: text, image: text }))),
  moderation: v.optional(
    v.nullable(
      v.object({
        isSuspicious: v.optional(v.boolean(), false),
        isMalwareBlocked: v.optional(v.boolean(), false),
        summary: text,
      }),
    ),
  ),
})
export type Detail = v.InferOutput<typeof Detail>
export const VersionFiles = v.object({
  version: v.object({
    version: v.string(),
    files: v.optional(v.array(v.object({ path: v.string(), sha256: v.nullable(v.string()) })), []),
  }),
})
/** In place of an archive: the skill lies in a public repository. */
export const Handoff = v.object({
  sourceRef: v.literal('public-github'),
  repo: v.pipe(v.string(), v.regex(/^(?!\.)[\w.-]{1,100}\/(?!\.)[\w.-]{1,100}$/)),
  commit: v.pipe(v.string(), v.regex(/^[0-9a-f]{7,64}$/i)),
  path: v.pipe(v.string(), v.maxLength(500)),
})

/** Of a search for repositories at GitHub. */
export const Repositories = v.object({
  total_count: v.number(),
  items: v.array(
    v.object({
      full_name: v.pipe(v.string(), v.regex(/^[\w.-]{1,100}\/[\w.-]{1,100}$/)),
      description: text,
      html_url: v.pipe(v.string(), v.regex(/^https?:\/\//)),
      stargazers_count: v.fallback(v.number(), 0),
      owner: v.object({ login: shown }),
    }),
  ),
})
