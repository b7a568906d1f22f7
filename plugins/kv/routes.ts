import * as v from 'valibot'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import { Deleted, Pair, PairParams, Pairs, Stored } from './schema.ts'
import type { Pairs as Service } from './service.ts'

export function pairRoutes(pairs: Service): readonly AnyRoute[] {
  const list = defineRoute({
    method: 'GET', path: '/api/memory/agents/:id/kv', summary: 'List the keys of an agent with their values',
    auth: 'bearer', cost: 5, params: AgentParams, returns: Pairs, errors: ['agent_not_found'],
    async handle({ params }) { return { kv_pairs: [...await pairs.list(params.id)] } },
  })

  const read = defineRoute({
    method: 'GET', path: '/api/memory/agents/:id/kv/:key', summary: 'Read one key of an agent',
    auth: 'bearer', cost: 5, params: PairParams, returns: Pair, errors: ['agent_not_found', 'key_not_found'],
    async handle({ params }) {
      const pair = await pairs.find(params.id, params.key)
      if (!pair) throw new Refusal('key_not_found', `Key not found: ${params.key}`)
      return pair
    },
  })

  const write = defineRoute({
    method: 'PUT', path: '/api/memory/agents/:id/kv/:key', summary: 'Create or overwrite one key of an agent',
    description: 'The value is `value` of the body. A body without `value` is stored whole.',
    auth: 'bearer', cost: 5, params: PairParams, body: v.unknown(), returns: Stored, errors: ['agent_not_found', 'payload_too_large'],
    example: { body: { value: { theme: 'dark' } } },
    async handle({ params, body }) {
      if (body === undefined) throw new Refusal('invalid_request', 'value: a JSON body is needed')
      await pairs.put(params.id, params.key, valueOf(body))
      return { status: 'stored' as const, key: params.key }
    },
  })

  const remove = defineRoute({
    method: 'DELETE', path: '/api/memory/agents/:id/kv/:key', summary: 'Delete one key of an agent',
    description: 'Succeeds when there is no such key.',
    auth: 'bearer', cost: 5, params: PairParams, returns: Deleted, errors: ['agent_not_found'],
    async handle({ params }) {
      await pairs.remove(params.id, params.key)
      return { status: 'deleted' as const, key: params.key }
    },
  })

  return [list, read, write, remove]
}

function valueOf(body: unknown): unknown {
  const wrapped = typeof body === 'object' && body !== null && !Array.isArray(body) && Object.hasOwn(body, 'value')
  return wrapped && 'value' in body ? body.value : body
}
