import * as v from 'valibot'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute, ToolDescription } from 'svc/sdk'
import { Names } from './assignable.ts'
import type { Assignable } from './assignable.ts'
import { AgentParams } from './contract.ts'
import type { AgentService } from './service.ts'

export const Mode = v.picklist(['all', 'allowlist', 'none'])

export const ToolsView = v.object({
  tools: v.array(v.string()),
  tool_allowlist: v.array(v.string()),
  tool_blocklist: v.array(v.string()),
  capabilities_tools: v.array(v.string()),
  disabled: v.boolean(),
  /** The available tools that it may use. */
  effective: v.array(v.string()),
})
export const ToolsChange = v.object({
  tools: v.optional(Names),
  capabilities_tools: v.optional(Names),
  tool_allowlist: v.optional(Names),
  tool_blocklist: v.optional(Names),
  disabled: v.optional(v.boolean()),
})
const assigned = { assigned: v.array(v.string()), available: v.array(v.string()), mode: Mode }
const listed = {
  skills: v.exactOptional(v.array(v.string())),
  mcp_servers: v.exactOptional(v.array(v.string())),
  ...assigned,
}

export interface GrantDeps {
  readonly agents: AgentService
  readonly assignable: Assignable
  readonly tools: () => readonly ToolDescription[]
}
export type AssignmentKind = 'skills' | 'mcp_servers'
const TITLES: Readonly<Record<AssignmentKind, string>> = { skills: 'skills', mcp_servers: 'MCP servers' }

const ModeChange = { mode: v.optional(Mode) }

const loadGrants = () => import('./grants.ts')

/** Which tools, skills and MCP servers an agent has. */
export function grantRoutes(deps: GrantDeps): readonly AnyRoute[] {
  return [
    listToolsRoute(deps),
    replaceToolsRoute(deps),
    listAssignedRoute(deps, 'skills'),
    replaceAssignedRoute(deps, 'skills'),
    listAssignedRoute(deps, 'mcp_servers'),
    replaceAssignedRoute(deps, 'mcp_servers'),
  ]
}

function listToolsRoute({ agents, tools }: GrantDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/tools',
    summary: 'List the tools of an agent',
    description:
      '`tools` are the patterns the manifest grants; an empty allowlist lets all of them through; the blocklist ' +
      'comes after it.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: AgentParams,
    returns: ToolsView,
    errors: ['agent_not_found'],
    handle: async ({ params }) => (await loadGrants()).toToolsView(tools(), await agents.require(params.id)),
  })
}

function replaceToolsRoute(deps: GrantDeps): AnyRoute {
  const { agents, tools } = deps
  return defineRoute({
    method: 'PUT',
    path: '/api/agents/:id/tools',
    summary: 'Replace the tools of an agent',
    description:
      'At least one list. `tools` and `capabilities_tools` replace what the manifest grants. Names may end in ' +
      '`*`; a tool that is not there yet may be named.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: AgentParams,
    body: ToolsChange,
    shown: async ({ params }) => ({
      fields: (await loadGrants()).toToolsView(tools(), await agents.require(params.id)),
      measured: ['effective'],
    }),
    returns: v.object({ status: v.literal('ok'), ...ToolsView.entries }),
    errors: ['agent_not_found'],
    example: { body: { tools: ['kv_get', 'kv_set'] } },
    handle: async ({ params, unchanged, body }) => {
      const { toToolEdits, toToolsView } = await loadGrants()
      const edits = toToolEdits(body)
      const agent = await agents.require(params.id)
      if (unchanged) return { status: 'ok' as const, ...toToolsView(tools(), agent) }
      if (Object.keys(edits).length === 0)
        throw new Refusal(
          'invalid_request',
          `body: nothing to change; one of ${Object.keys(ToolsChange.entries).join(', ')} is needed`,
        )
      return { status: 'ok' as const, ...toToolsView(tools(), await agents.edit(params.id, edits)) }
    },
  })
}

function listAssignedRoute(deps: GrantDeps, kind: AssignmentKind): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: `/api/agents/:id/${kind}`,
    summary: `List the ${TITLES[kind]} of an agent`,
    description: '`mode` is `all` when none is assigned by name and `none` when it is to have none.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: AgentParams,
    returns: v.object(listed),
    errors: ['agent_not_found'],
    handle: async ({ params }) => (await loadGrants()).toAssignment(deps, kind, await deps.agents.require(params.id)),
  })
}

function replaceAssignedRoute(deps: GrantDeps, kind: AssignmentKind): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: `/api/agents/:id/${kind}`,
    summary: `Replace the ${TITLES[kind]} of an agent`,
    description:
      'An empty list, or `*`, assigns all of them; `mode: none` takes all of them away. The list alone is ' +
      'taken for the body, too.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: AgentParams,
    errors: ['agent_not_found', 'conflict'],
    body: v.union([Names, v.object({ [kind]: v.optional(Names), ...ModeChange })], `${kind}: Expected a list of names`),
    returns: v.object({ status: v.literal('ok'), ...listed }),
    // The list and the mode are one statement, which counts as it is sent: an empty list means all, whatever it was
    // before.
    async shown({ params }) {
      const { toAssignment } = await loadGrants()
      const { assigned: now, available } = await toAssignment(deps, kind, await deps.agents.require(params.id))
      return { fields: { assigned: now, available }, measured: ['available'] }
    },
    handle: async ({ params, body }) => {
      const { parseNames, replaceAssigned, toAssignment } = await loadGrants()
      const names = parseNames(Array.isArray(body) ? { [kind]: body } : body, kind)
      const mode = Array.isArray(body) ? undefined : body.mode
      const agent = await replaceAssigned(deps, params.id, { kind, names, mode })
      return { status: 'ok' as const, ...(await toAssignment(deps, kind, agent)) }
    },
  })
}
