import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import {
  AddBody,
  Added,
  AvailableList,
  AvailableQuery,
  HealthList,
  IntegrationDetail,
  IntegrationList,
  IntegrationParams,
  Reconnected,
  Reloaded,
} from './body.ts'
import type { Runtime } from './runtime.ts'
import * as v from 'valibot'

export type LazyRuntime = () => Promise<Runtime>
const auth = 'bearer' as const
const errors = ['integration_not_found'] as const

export function integrationRoutes(runtime: LazyRuntime): readonly AnyRoute[] {
  return [
    listRoute(runtime),
    availableRoute(runtime),
    healthRoute(runtime, '/api/integrations/health'),
    healthRoute(runtime, '/api/mcp/health'),
    addRoute(runtime),
    reloadRoute(runtime),
    readRoute(runtime),
    removeRoute(runtime),
    reconnectRoute(runtime),
  ]
}
const load = async (runtime: LazyRuntime) => {
  const [loaded, views] = await Promise.all([runtime(), import('./views.ts')])
  return { ...loaded, ...views }
}

function listRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/integrations',
    summary: 'The integrations that were added, the oldest first',
    auth,
    effect: 'read',
    cost: 5,
    returns: IntegrationList,
    async handle() {
      const { service, toItem } = await load(runtime)
      const installed = (await service.list()).map(toItem)
      return { installed, count: installed.length }
    },
  })
}

function availableRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/integrations/available',
    summary: 'The catalogue of integrations',
    description: 'Files in `<home>/integrations` are part of it; `problems` names those that are no templates.',
    auth,
    effect: 'read',
    cost: 5,
    query: AvailableQuery,
    returns: AvailableList,
    async handle({ query }) {
      const { service, matches, toAvailable } = await load(runtime)
      const [{ templates, problems }, added] = await Promise.all([service.catalog(), service.list()])
      const all = [...templates.values()]
      const integrations = all.filter((each) => matches(each, query)).map((each) => toAvailable(each, added))
      const categories = [...new Set(all.map(({ category }) => category))].toSorted()
      return { integrations, count: integrations.length, categories, problems: [...problems] }
    },
  })
}

function healthRoute(runtime: LazyRuntime, path: '/api/integrations/health' | '/api/mcp/health'): AnyRoute {
  return defineRoute({
    method: 'GET',
    path,
    summary: 'How the integrations work, as the last checks found',
    auth,
    effect: 'read',
    cost: 5,
    returns: HealthList,
    async handle() {
      const { service, monitor, toHealth } = await load(runtime)
      const health = (await service.list()).map((each) => toHealth(each, monitor))
      return { health, count: health.length }
    },
  })
}

function addRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/integrations/add',
    summary: 'Add an integration of the catalogue',
    description:
      'Answers when its MCP server was started and has listed its tools, or waits for a login; otherwise nothing of it ' +
      'is left. Values go to the vault and are never shown.',
    auth,
    effect: 'lasting',
    cost: 50,
    body: AddBody,
    returns: Added,
    status: 201,
    errors: ['template_not_found', 'invalid_request', 'conflict', 'forbidden', 'service_unavailable'],
    example: { body: { type: 'postgresql', token: 'postgres://reader:secret@database.example/shop' } },
    async handle({ body: { type, id, ...rest } }) {
      const template = type ?? id
      if (template === undefined)
        throw new Refusal('invalid_request', 'type: expected the id of an entry of GET /api/integrations/available')
      const { service, toAdded } = await load(runtime)
      return toAdded(await service.add({ template, ...rest }))
    },
  })
}

function reloadRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/integrations/reload',
    summary: 'Read the templates again, and connect the integrations that do not work',
    auth,
    effect: 'lasting',
    cost: 50,
    returns: Reloaded,
    async handle() {
      const { service } = await load(runtime)
      const connected = await service.reconnectFailed()
      const { templates, problems } = await service.catalog()
      return {
        status: 'reloaded' as const,
        new_connections: connected,
        templates: templates.size,
        problems: [...problems],
      }
    },
  })
}

function readRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/integrations/:id',
    summary: 'Read an integration with its tools',
    auth,
    effect: 'read',
    cost: 5,
    params: IntegrationParams,
    returns: IntegrationDetail,
    errors,
    async handle({ params }) {
      const { service, toDetail } = await load(runtime)
      return toDetail(await service.require(params.id))
    },
  })
}

function removeRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/integrations/:id',
    summary: 'Remove an integration with its secrets and its MCP server',
    auth,
    effect: 'lasting',
    cost: 20,
    params: IntegrationParams,
    returns: v.object({ id: v.string(), status: v.literal('removed') }),
    errors,
    async handle({ params: { id } }) {
      await (await runtime()).service.remove(id)
      return { id, status: 'removed' as const }
    },
  })
}

function reconnectRoute(runtime: LazyRuntime): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/integrations/:id/reconnect',
    summary: 'End the MCP server of an integration and connect again',
    description: 'Also after it was given up. With `login_required` a person has to sign in first.',
    auth,
    effect: 'lasting',
    cost: 50,
    params: IntegrationParams,
    returns: Reconnected,
    errors: [...errors, 'conflict', 'service_unavailable'],
    async handle({ params }) {
      const { service, toReconnected } = await load(runtime)
      return toReconnected(await service.reconnect(params.id))
    },
  })
}
