import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'

const SearchQuery = v.object({
  q: v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(200), v.description('All of these words.')),
  agent_id: v.optional(v.string()),
  limit: v.optional(v.pipe(v.string(), v.regex(/^[1-9]\d?$/), v.transform(Number)), '20'),
})
const Found = v.object({ results: v.array(v.record(v.string(), v.nullable(v.string()))), complete: v.boolean() })

export interface SearchDeps {
  readonly db: PluginDatabase
  readonly agents: Agents
  /** Of all messages, from the newest on, that one search looks at. */
  readonly maxMessages: number
}

export const searchRoute = (deps: SearchDeps): AnyRoute =>
  defineRoute({
    method: 'GET',
    path: '/api/sessions/search',
    summary: 'Messages of people and agents that have some words, the newest first',
    auth: 'bearer',
    effect: 'read',
    cost: 20,
    query: SearchQuery,
    returns: Found,
    errors: ['agent_not_found', 'invalid_request'],
    handle: async ({ query, signal }) => (await import('./answer.ts')).answer(deps, query, signal),
  })
