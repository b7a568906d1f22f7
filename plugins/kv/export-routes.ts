import { defineRoute, rawBody, reply } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import { Export, Imported, NewImport } from './schema.ts'
import type { Limits } from './schema.ts'
import type { OpenPairs } from './service.ts'

export function exportRoutes(pairs: OpenPairs, agents: Agents, limits: Limits): readonly AnyRoute[] {
  return [
    exportedRoute(pairs, agents, '/api/agents/:id/memory/export', 'Export the keys of an agent'),
    importedRoute(pairs, agents, limits, '/api/agents/:id/memory/import', 'Import keys into an agent'),
  ]
}

function exportedRoute(pairs: OpenPairs, agents: Agents, path: `/${string}`, summary: string): AnyRoute {
  return defineRoute({
    method: 'GET',
    path,
    summary,
    description: 'Every key with its value, for an import into this or another agent.',
    auth: 'bearer',
    effect: 'read',
    cost: 10,
    params: AgentParams,
    returns: Export,
    errors: ['agent_not_found'],
    async handle({ params }) {
      const { id } = await agents.require(params.id)
      const kv = (await (await pairs()).rows(id)).map(({ key, value }) => `${JSON.stringify(key)}:${value}`).join(',')
      // Values are JSON text already: parsing them here would change numbers beyond the range of a double.
      return reply(`{"agent_id":${JSON.stringify(id)},"version":1,"kv":{${kv}}}`, {
        'content-type': 'application/json',
      })
    },
  })
}

function importedRoute(
  pairs: OpenPairs,
  agents: Agents,
  limits: Limits,
  path: `/${string}`,
  summary: string,
): AnyRoute {
  return defineRoute({
    method: 'POST',
    path,
    summary,
    description:
      'Accepts an export. Into the agent of the path, whatever `agent_id` the body names. ' +
      '`clear_existing` deletes the other keys in the same step. failed_keys` names the keys that were refused.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 50,
    params: AgentParams,
    body: rawBody(limits.max_import_bytes, NewImport),
    returns: Imported,
    errors: ['agent_not_found', 'payload_too_large'],
    example: { body: { kv: { theme: 'dark' } } },
    async handle({ params, body }) {
      const { id } = await agents.require(params.id)
      const { readImport } = await import('./import-body.ts')
      const { texts, clear } = readImport(body, limits.max_value_depth)
      const { imported: count, failed } = await (await pairs()).import(id, texts, clear)
      const answer = { agent_id: id, keys_imported: count }
      return failed.length === 0
        ? { status: 'imported' as const, ...answer }
        : { status: 'partial' as const, ...answer, failed_keys: failed.map(({ key }) => key), errors: [...failed] }
    },
  })
}
