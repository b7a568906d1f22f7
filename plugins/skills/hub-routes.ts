import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { SkillAdmin } from './admin.ts'
import { hubFailed } from './hub/errors.ts'
import {
  BrowseQuery,
  BrowseResults,
  HubCode,
  HubInstall,
  HubInstalled,
  HubParams,
  HubQuery,
  HubSkill,
  MarketplaceQuery,
  MarketplaceResults,
  SearchQuery,
  SearchResults,
} from './hub-schema.ts'

type Admin = () => Promise<SkillAdmin>
const read = { method: 'GET', auth: 'bearer', effect: 'read', cost: 10 } as const
const errors = ['not_found', 'forbidden', 'conflict', 'rate_limit', hubFailed] as const

/** Interface 4.7: the marketplace and the hub. */
export function hubRoutes(admin: Admin): readonly AnyRoute[] {
  return [...searchRoutes(admin), ...skillRoutes(admin), installRoute(admin)]
}

function searchRoutes(admin: Admin): readonly AnyRoute[] {
  return [
    defineRoute({
      ...read,
      path: '/api/marketplace/search',
      summary: 'Search the marketplace of skills',
      description: 'Public repositories; `name` is installed as `marketplace:<name>`. `error` says why there are none.',
      query: MarketplaceQuery,
      returns: MarketplaceResults,
      handle: async ({ query }) => (await (await admin()).hubs()).marketplace.search(query.q, Number(query.page)),
    }),
    defineRoute({
      ...read,
      path: '/api/clawhub/search',
      summary: 'Search the hub of skills',
      query: SearchQuery,
      returns: SearchResults,
      errors,
      handle: async ({ query }) => (await (await admin()).hubs()).clawhub.search(query.q, query.limit),
    }),
    defineRoute({
      ...read,
      path: '/api/clawhub/browse',
      summary: 'List skills of the hub',
      description: 'By `cursor` or by `page`. `categories` are those of the page; `category` leaves the others out.',
      query: BrowseQuery,
      returns: BrowseResults,
      errors,
      handle: async ({ query: { page, cursor, category, ...query } }) =>
        (await (await admin()).hubs()).clawhub.browse({ ...query, cursor, category, page: Number(page) }),
    }),
  ]
}

function skillRoutes(admin: Admin): readonly AnyRoute[] {
  return [
    defineRoute({
      ...read,
      path: '/api/clawhub/skill/:slug',
      summary: 'What the hub says of a skill',
      params: HubParams,
      query: HubQuery,
      returns: HubSkill,
      errors,
      handle: async ({ params: { slug }, query: { owner } }) => (await admin()).ofHub(slug, owner),
    }),
    defineRoute({
      ...read,
      path: '/api/clawhub/skill/:slug/code',
      summary: 'The source of a skill of the hub',
      description: 'Of `SKILL.md`, `package.json` and `skill.toml` the first there is.',
      params: HubParams,
      query: HubQuery,
      returns: HubCode,
      errors,
      handle: async ({ params: { slug }, query: { owner } }) =>
        (await (await admin()).hubs()).clawhub.code(slug, owner),
    }),
  ]
}

function installRoute(admin: Admin): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/clawhub/install',
    summary: 'Install a skill of the hub',
    description:
      'The same as POST /api/skills/install with the source `hub:<slug>`. A `SKILL.md` of another system becomes a ' +
      '`skill.toml`: `tool_translations` are the names of tools that changed.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 50,
    status: 201,
    body: HubInstall,
    returns: HubInstalled,
    errors: [...errors, 'payload_too_large'],
    example: { body: { slug: 'gifgrep' } },
    handle: async ({ body: { slug, owner, version, ...options } }) => {
      const from = owner === undefined ? slug : `@${owner.replace(/^@/, '')}/${slug}`
      const source = `hub:${from}${version === undefined ? '' : `@${version}`}`
      const installed = await (await admin()).install({ ...options, source })
      return { ...installed, name: installed.skill, slug, is_prompt_only: installed.runtime === 'prompt_only' }
    },
  })
}
