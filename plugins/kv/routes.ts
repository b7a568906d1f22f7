import { defineRoute, rawBody, Refusal, reply } from 'svc/sdk'
import type { AnyRoute, Reply } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import { Deleted, KeyNotFound, NewValue, Pair, PairParams, Pairs, Stored } from './schema.ts'
import type { Limits, PairRow } from './schema.ts'
import type { OpenPairs } from './service.ts'

export function pairRoutes(pairs: OpenPairs, limits: Limits): readonly AnyRoute[] {
  return [listRoute(pairs), readRoute(pairs), writeRoute(pairs, limits), removeRoute(pairs)]
}

function listRoute(pairs: OpenPairs): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/memory/agents/:id/kv',
    summary: 'List the keys of an agent with their values',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    returns: Pairs,
    errors: ['agent_not_found'],
    async handle({ params }) {
      return json(`{"kv_pairs":[${(await (await pairs()).rows(params.id)).map(toJson).join(',')}]}`)
    },
  })
}

function readRoute(pairs: OpenPairs): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/memory/agents/:id/kv/:key',
    summary: 'Read one key of an agent',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: PairParams,
    returns: Pair,
    errors: ['agent_not_found', KeyNotFound],
    async handle({ params }) {
      const value = await (await pairs()).read(params.id, params.key)
      if (value === undefined) throw new Refusal(KeyNotFound, `Key not found: ${params.key}`)
      return json(toJson({ key: params.key, value }))
    },
  })
}

function writeRoute(pairs: OpenPairs, limits: Limits): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/memory/agents/:id/kv/:key',
    summary: 'Create or overwrite one key of an agent',
    description:
      'The value is the member `value` of the body, which may be any JSON and comes back as it was sent. A body ' +
      'with other fields is refused.',
    // White space and escapes may make the body several times as large as the value that is kept.
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: PairParams,
    body: rawBody(limits.max_value_bytes * 4 + 1024, NewValue),
    returns: Stored,
    errors: ['agent_not_found', 'payload_too_large'],
    example: { body: { value: { theme: 'dark' } } },
    async handle({ params, body }) {
      const { readValue } = await import('./json-text.ts')
      await (await pairs()).write(params.id, params.key, readValue(body, params.key, limits.max_value_depth))
      return { status: 'stored' as const, key: params.key }
    },
  })
}

function removeRoute(pairs: OpenPairs): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/memory/agents/:id/kv/:key',
    summary: 'Delete one key of an agent',
    description: 'Succeeds even when the key does not exist.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: PairParams,
    returns: Deleted,
    errors: ['agent_not_found'],
    async handle({ params }) {
      await (await pairs()).remove(params.id, params.key)
      return { status: 'deleted' as const, key: params.key }
    },
  })
}

// Values are JSON text already: parsing them here would change numbers beyond the range of a double.
const toJson = ({ key, value }: PairRow): string => `{"key":${JSON.stringify(key)},"value":${value}}`
const json = (text: string): Reply => reply(text, { 'content-type': 'application/json' })
