import * as v from 'valibot'
import { defineRoute, omitUndefined, Refusal } from 'svc/sdk'
import type { AnyRoute, ToolDescription } from 'svc/sdk'
import { checkAssigned, Names } from './assignable.ts'
import type { Assignable } from './assignable.ts'
import { AgentParams } from './contract.ts'
import { selection } from './detail.ts'
import type { LoadedAgent } from './registry.ts'
import type { AgentService } from './service.ts'
import { mayUse } from './tool-rights.ts'

const Mode = v.picklist(['all', 'allowlist', 'none'])

const ToolsView = v.object({
  tools: v.array(v.string()),
  tool_allowlist: v.array(v.string()),
  tool_blocklist: v.array(v.string()),
  capabilities_tools: v.array(v.string()),
  disabled: v.boolean(),
  /** The available tools that it may use. */
  effective: v.array(v.string()),
})
const ToolsChange = v.object({
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
type AssignmentKind = 'skills' | 'mcp_servers'
const TITLES: Readonly<Record<AssignmentKind, string>> = { skills: 'skills', mcp_servers: 'MCP servers' }

const ModeChange = { mode: v.optional(Mode) }

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
    handle: async ({ params }) => toToolsView(tools(), await agents.require(params.id)),
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
      fields: toToolsView(tools(), await agents.require(params.id)),
      measured: ['effective'],
    }),
    returns: v.object({ status: v.literal('ok'), ...ToolsView.entries }),
    errors: ['agent_not_found'],
    example: { body: { tools: ['kv_get', 'kv_set'] } },
    handle: async ({ params, unchanged, body }) => {
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
    handle: async ({ params }) => toAssignment(deps, kind, await deps.agents.require(params.id)),
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
      const { assigned: now, available } = await toAssignment(deps, kind, await deps.agents.require(params.id))
      return { fields: { assigned: now, available }, measured: ['available'] }
    },
    handle: async ({ params, body }) => {
      const names = parseNames(Array.isArray(body) ? { [kind]: body } : body, kind)
      const mode = Array.isArray(body) ? undefined : body.mode
      const agent = await replaceAssigned(deps, params.id, { kind, names, mode })
      return { status: 'ok' as const, ...(await toAssignment(deps, kind, agent)) }
    },
  })
}

function toToolsView(
  tools: readonly ToolDescription[],
  { manifest, permission }: LoadedAgent,
): v.InferOutput<typeof ToolsView> {
  return {
    tools: manifest.capabilities.tools,
    tool_allowlist: manifest.tool_allowlist,
    tool_blocklist: manifest.tool_blocklist,
    capabilities_tools: manifest.capabilities.tools,
    disabled: manifest.tools_disabled,
    effective: tools.filter((tool) => mayUse(manifest, permission, tool)).map((tool) => tool.name),
  }
}

/** The keys of the manifest that a change of the tools sets. */
function toToolEdits({
  tools: granted,
  capabilities_tools = granted,
  tool_allowlist,
  tool_blocklist,
  disabled,
}: v.InferOutput<typeof ToolsChange>) {
  if (granted !== undefined && JSON.stringify(granted) !== JSON.stringify(capabilities_tools))
    throw new Refusal('invalid_request', 'capabilities_tools: differs from tools')
  return omitUndefined({
    'capabilities.tools': capabilities_tools,
    tool_allowlist,
    tool_blocklist,
    tools_disabled: disabled,
  })
}

async function toAssignment({ assignable }: GrantDeps, kind: AssignmentKind, { manifest }: LoadedAgent) {
  return {
    ...(kind === 'skills' ? { skills: manifest.skills } : { mcp_servers: manifest.mcp_servers }),
    assigned: manifest[kind],
    available: [...(await assignable(kind))],
    mode: selection(kind === 'skills' ? manifest.skills_disabled : manifest.mcp_disabled, manifest[kind]),
  }
}

interface AssignmentChange {
  readonly kind: AssignmentKind
  readonly names: readonly string[] | undefined
  readonly mode: v.InferOutput<typeof Mode> | undefined
}

async function replaceAssigned(
  { agents, assignable }: GrantDeps,
  agentId: string,
  { kind, names, mode }: AssignmentChange,
): Promise<LoadedAgent> {
  const agent = await agents.require(agentId)
  if (names === undefined && mode === undefined)
    throw new Refusal('invalid_request', `${kind}: Expected a list of names`)
  const kept = mode === 'all' ? [] : agent.manifest[kind]
  const list = names === undefined ? kept : await checkAssigned(assignable, kind, names, agent)
  if (mode === 'allowlist' && list.length === 0)
    throw new Refusal('invalid_request', `${kind}: mode allowlist needs names`)
  if (mode === 'all' && list.length > 0)
    throw new Refusal('invalid_request', `mode: all does not go with names in ${kind}`)
  const disabled = kind === 'skills' ? 'skills_disabled' : 'mcp_disabled'
  return agents.edit(agentId, { [kind]: list, [disabled]: mode === 'none' })
}

function parseNames(body: object, kind: string): readonly string[] | undefined {
  const found: unknown = Object.entries(body).find(([key]) => key === kind)?.[1]
  return found === undefined ? undefined : v.parse(Names, found)
}
