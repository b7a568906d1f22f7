import type * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { McpServerView } from './contract.ts'
import { serverFailed } from './errors.ts'
import { Changed, Log, Removed, ServerList, ServerParams, ServerView, Tested, ToolList } from './schema.ts'
import { ServerBody, ServerChange } from './servers/body.ts'
import type { ServerRegistry } from './servers/server-registry.ts'

type LazyRegistry = () => Promise<ServerRegistry>
const auth = 'bearer' as const
const path = '/api/mcp/servers'
const load = async (registry: LazyRegistry) => {
  const [servers, addition] = await Promise.all([registry(), import('./servers/addition.ts')])
  return { servers, ...addition }
}
/** Changes by itself, or is said by the server. */
const MEASURED =
  'state connected error server_info protocol_version instructions pid restarts calls failed_calls connected_since last_used tools'.split(
    ' ',
  )
const example = {
  name: 'files',
  transport: 'stdio' as const,
  command: 'mcp-server-filesystem',
  args: ['.'],
}

export function mcpRoutes(registry: LazyRegistry): readonly AnyRoute[] {
  return [
    listRoute(registry),
    addRoute(registry),
    testRoute(registry),
    findRoute(registry),
    changeRoute(registry),
    removeRoute(registry),
    reconnectRoute(registry),
    logRoute(registry),
    toolsRoute(registry),
  ]
}

function listRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'GET',
    path,
    summary: 'The MCP servers with their state and tools',
    auth,
    effect: 'read',
    cost: 5,
    returns: ServerList,
    async handle() {
      const servers = await (await registry()).list()
      return { servers: servers.map(toView), total: servers.length }
    },
  })
}

function addRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'POST',
    path,
    summary: 'Add an MCP server',
    description:
      'Connects to it and lists its tools before it answers; a server that cannot be used is not added. A program is ' +
      'confined to a folder of its own and the hosts in `network`. `credentials` are values for its environment; they ' +
      'go to the vault and are never shown.',
    auth,
    effect: 'lasting',
    cost: 50,
    status: 201,
    body: ServerBody,
    returns: Changed,
    errors: ['conflict', 'forbidden', serverFailed],
    example: { body: example },
    async handle({ body }) {
      const { servers, toAddition } = await load(registry)
      return { status: 'added' as const, ...toView(await servers.add(toAddition(body))) }
    },
  })
}

function testRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: `${path}/test`,
    summary: 'Connect to an MCP server without adding it',
    auth,
    effect: 'lasting',
    cost: 50,
    body: ServerBody,
    returns: Tested,
    errors: ['forbidden', serverFailed],
    example: { body: example },
    async handle({ body }) {
      const { servers, toAddition } = await load(registry)
      const { serverInfo, protocolVersion, tools } = await servers.test(toAddition(body))
      return {
        status: 'ok' as const,
        server_info: serverInfo,
        protocol_version: protocolVersion,
        tools: tools.map(({ name, description = '' }) => ({ name, description })),
      }
    },
  })
}

function findRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: `${path}/:name`,
    summary: 'An MCP server with its state and tools',
    auth,
    effect: 'read',
    cost: 2,
    params: ServerParams,
    returns: ServerView,
    errors: ['not_found'],
    handle: async ({ params }) => toView((await registry()).view(params.name)),
  })
}

function changeRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: `${path}/:name`,
    summary: 'Change an MCP server that was added over the API',
    description:
      'What is not named stays, values of headers and variables too. The old connection is ended when the new one ' +
      'works; when it does not, nothing changes.',
    auth,
    effect: 'lasting',
    cost: 50,
    params: ServerParams,
    body: ServerChange,
    returns: Changed,
    shown: async ({ params }) => ({ fields: toView((await registry()).view(params.name)), measured: MEASURED }),
    errors: ['not_found', 'conflict', 'forbidden', serverFailed],
    example: { body: { timeout_secs: 120 } },
    async handle({ params: { name }, body, unchanged }) {
      const { servers, toChange } = await load(registry)
      if (unchanged) return { status: 'updated' as const, ...toView(servers.view(name)) }
      const change = toChange(servers.require(name).config, body)
      return { status: 'updated' as const, ...toView(await servers.update(name, change)) }
    },
  })
}

function removeRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: `${path}/:name`,
    summary: 'Remove an MCP server that was added over the API',
    description: 'Its program is ended with everything it started, and its secrets are deleted.',
    auth,
    effect: 'lasting',
    cost: 10,
    params: ServerParams,
    returns: Removed,
    errors: ['not_found', 'conflict'],
    async handle({ params: { name } }) {
      await (await registry()).remove(name)
      return { status: 'removed' as const, name }
    },
  })
}

function reconnectRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: `${path}/:name/restart`,
    summary: 'Start an MCP server anew',
    description: 'Also one that was given up. Calls that run fail.',
    auth,
    effect: 'own',
    cost: 20,
    params: ServerParams,
    returns: Changed,
    errors: ['not_found', 'conflict', serverFailed],
    handle: async ({ params }) => ({
      status: 'restarted' as const,
      ...toView(await (await registry()).reconnect(params.name)),
    }),
  })
}

function logRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: `${path}/:name/log`,
    summary: 'What an MCP server wrote to stderr, and what happened to it',
    auth,
    effect: 'read',
    cost: 5,
    params: ServerParams,
    returns: Log,
    errors: ['not_found'],
    async handle({ params }) {
      const { text, dropped } = (await registry()).require(params.name).log.read()
      return { name: params.name, log: text, dropped }
    },
  })
}

function toolsRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/mcp/tools',
    summary: 'The tools of all MCP servers',
    auth,
    effect: 'read',
    cost: 5,
    returns: ToolList,
    async handle() {
      const servers = (await (await registry()).list()).map(toView)
      const tools = servers.flatMap(({ name: server, tools: own }) => own.map((tool) => ({ ...tool, server })))
      return { tools, total: tools.length }
    },
  })
}

/** A copy, as the answer of a route is. */
const toView = (view: McpServerView): v.InferOutput<typeof ServerView> => ({
  ...view,
  args: [...view.args],
  headers: [...view.headers],
  env: [...view.env],
  network: [...view.network],
  server_info: view.server_info && { ...view.server_info },
  tools: view.tools.map((tool) => ({ ...tool, input_schema: { ...tool.input_schema } })),
})
