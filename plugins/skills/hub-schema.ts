import * as v from 'valibot'
import { orAbsent } from 'svc/internal'
import { InstallRequest, InstallResult } from './schema.ts'

const count = (max: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d{1,4}$/, `must be 1 to ${max}`),
    v.check((text) => Number(text) >= 1 && Number(text) <= max, `must be 1 to ${max}`),
  )
const words = v.optional(v.pipe(v.string(), v.maxLength(200)), '')
const slug = v.pipe(v.string(), v.regex(/^[A-Za-z0-9][\w.-]{0,199}$/, 'must be a slug of the hub'))
const owner = v.pipe(v.string(), v.regex(/^@?[\w.-]{1,100}$/, 'must be the name of an owner'))
const time = v.nullable(v.string())

export const MarketplaceQuery = v.object({ q: words, page: v.optional(count(50), '1') })
export const MarketplaceResults = v.object({
  results: v.array(
    v.object({
      name: v.string(),
      description: v.string(),
      stars: v.number(),
      url: v.string(),
      author: v.string(),
      downloads: v.nullable(v.number()),
      version: v.nullable(v.string()),
    }),
  ),
  total: v.number(),
  page: v.number(),
  error: v.exactOptional(v.string()),
})

const item = { slug: v.string(), name: v.string(), description: v.string(), version: v.string(), updated_at: time }
const ranked = { ...item, downloads: v.number(), stars: v.number() }
export const SearchQuery = v.object({ q: words, limit: v.optional(count(100), '20') })
export const SearchResults = v.object({
  items: v.array(v.object({ ...item, owner: v.string(), score: v.number() })),
  next_cursor: time,
})
export const BrowseQuery = v.object({
  sort: v.optional(v.picklist(['trending', 'downloads', 'stars', 'updated', 'rating']), 'trending'),
  limit: v.optional(count(100), '20'),
  cursor: v.optional(v.pipe(v.string(), v.maxLength(2048))),
  page: v.optional(count(20), '1'),
  category: v.optional(v.pipe(v.string(), v.maxLength(100))),
})
export const BrowseResults = v.object({
  items: v.array(v.object(ranked)),
  categories: v.array(v.string()),
  page: v.number(),
  next_cursor: time,
})
export const HubParams = v.object({ slug })
export const HubQuery = v.object({ owner: v.optional(owner) })
export const HubSkill = v.object({
  ...ranked,
  author: v.string(),
  author_name: v.string(),
  author_image: v.string(),
  tags: v.array(v.string()),
  created_at: time,
  installed: v.boolean(),
})
export const HubCode = v.object({ slug: v.string(), filename: v.string(), code: v.string() })
const { source: _, ...options } = InstallRequest.entries
export const HubInstall = v.object({
  slug,
  owner: orAbsent(owner),
  version: orAbsent(v.pipe(v.string(), v.regex(/^[\w.+-]{1,64}$/, 'must be a version'))),
  ...options,
})
export const HubInstalled = v.object({
  ...InstallResult.entries,
  name: v.string(),
  slug: v.string(),
  is_prompt_only: v.boolean(),
})
