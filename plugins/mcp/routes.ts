import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
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
      const servers = (await registry()).allShown()
      return { servers, total: servers.length }
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
      'confined to a folder of its own and the hosts in `network`. `credentials` go to its environment and the vault.',
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
      const { name } = await servers.add(toAddition(body))
      return { status: 'added' as const, ...servers.shown(name) }
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
    handle: async ({ params }) => (await registry()).shown(params.name),
  })
}

function changeRoute(registry: LazyRegistry): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: `${path}/:name`,
    summary: 'Change an MCP server that was added over the API',
    description:
      'What is not named stays, secrets too if the same origin, or the same program with the same arguments, gets ' +
      'them. The old connection ends when the new one works; when it does not, nothing changes.',
    auth,
    effect: 'lasting',
    cost: 50,
    params: ServerParams,
    body: ServerChange,
    returns: Changed,
    shown: async ({ params }) => ({ fields: (await registry()).shown(params.name), measured: MEASURED }),
    errors: ['not_found', 'conflict', 'forbidden', serverFailed],
    example: { body: { timeout_secs: 120 } },
    async handle({ params: { name }, body, unchanged }) {
      const { servers, toChange } = await load(registry)
      if (!unchanged) await servers.update(name, toChange(servers.require(name).config, body))
      return { status: 'updated' as const, ...servers.shown(name) }
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
    async handle({ params: { name } }) {
      const servers = await registry()
      await servers.reconnect(name)
      return { status: 'restarted' as const, ...servers.shown(name) }
    },
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
      const servers = (await registry()).allShown()
      const tools = servers.flatMap(({ name: server, tools: own }) => own.map((tool) => ({ ...tool, server })))
      return { tools, total: tools.length }
    },
  })
}
