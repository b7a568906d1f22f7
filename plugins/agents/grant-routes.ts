import * as v from 'valibot'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute, ToolDescription } from 'svc/sdk'
import { checkAssigned, Names as names } from './assignable.ts'
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
  /** What it may use of what there is now. */
  effective: v.array(v.string()),
})
const ToolsChange = v.object({
  tools: v.optional(names),
  capabilities_tools: v.optional(names),
  tool_allowlist: v.optional(names),
  tool_blocklist: v.optional(names),
  disabled: v.optional(v.boolean()),
})
const assigned = { assigned: v.array(v.string()), available: v.array(v.string()), mode: Mode }
const listed = {
  skills: v.exactOptional(v.array(v.string())),
  mcp_servers: v.exactOptional(v.array(v.string())),
  ...assigned,
}

/** Which tools, skills and MCP servers an agent has. */
export function grantRoutes(
  agents: AgentService,
  assignable: Assignable,
  tools: () => readonly ToolDescription[],
): readonly AnyRoute[] {
  const toolsOf = ({ manifest, permission }: LoadedAgent): v.InferOutput<typeof ToolsView> => ({
    tools: manifest.capabilities.tools,
    tool_allowlist: manifest.tool_allowlist,
    tool_blocklist: manifest.tool_blocklist,
    capabilities_tools: manifest.capabilities.tools,
    disabled: manifest.tools_disabled,
    effective: tools()
      .filter((tool) => mayUse(manifest, permission, tool))
      .map((tool) => tool.name),
  })
  const read = defineRoute({
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
    handle: async ({ params }) => toolsOf(await agents.require(params.id)),
  })
  const replace = defineRoute({
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
    shown: async ({ params }) => ({ fields: toolsOf(await agents.require(params.id)), measured: ['effective'] }),
    returns: v.object({ status: v.literal('ok'), ...ToolsView.entries }),
    errors: ['agent_not_found'],
    example: { body: { tools: ['kv_get', 'kv_set'] } },
    async handle({
      params,
      unchanged,
      body: { tools: granted, capabilities_tools = granted, tool_allowlist, tool_blocklist, disabled },
    }) {
      if (granted !== undefined && JSON.stringify(granted) !== JSON.stringify(capabilities_tools))
        throw new Refusal('invalid_request', 'capabilities_tools: says something else than tools')
      const edits = Object.fromEntries(
        Object.entries({
          'capabilities.tools': capabilities_tools,
          tool_allowlist,
          tool_blocklist,
          tools_disabled: disabled,
        }).filter(([, value]) => value !== undefined),
      )
      const agent = await agents.require(params.id)
      if (unchanged) return { status: 'ok' as const, ...toolsOf(agent) }
      if (Object.keys(edits).length === 0)
        throw new Refusal(
          'invalid_request',
          `body: nothing to change; one of ${Object.keys(ToolsChange.entries).join(', ')} is needed`,
        )
      return { status: 'ok' as const, ...toolsOf(await agents.edit(params.id, edits)) }
    },
  })

  const facts = async (kind: 'skills' | 'mcp_servers', { manifest }: LoadedAgent) => ({
    ...(kind === 'skills' ? { skills: manifest.skills } : { mcp_servers: manifest.mcp_servers }),
    assigned: manifest[kind],
    available: [...(await assignable(kind))],
    mode: selection(kind === 'skills' ? manifest.skills_disabled : manifest.mcp_disabled, manifest[kind]),
  })
  const assign = (kind: 'skills' | 'mcp_servers', what: string): readonly AnyRoute[] => {
    const disabled = kind === 'skills' ? 'skills_disabled' : 'mcp_disabled'
    const change = { mode: v.optional(Mode) }
    return [
      defineRoute({
        method: 'GET',
        path: `/api/agents/:id/${kind}`,
        summary: `List the ${what} of an agent`,
        description: '`mode` is `all` when none is assigned by name and `none` when it is to have none.',
        auth: 'bearer',
        effect: 'read',
        cost: 2,
        params: AgentParams,
        returns: v.object(listed),
        errors: ['agent_not_found'],
        handle: async ({ params }) => facts(kind, await agents.require(params.id)),
      }),
      defineRoute({
        method: 'PUT',
        path: `/api/agents/:id/${kind}`,
        summary: `Replace the ${what} of an agent`,
        description:
          'An empty list, or `*`, assigns all of them; `mode: none` takes all of them away. The list alone is ' +
          'taken for the body, too.',
        auth: 'bearer',
        effect: 'lasting',
        cost: 5,
        params: AgentParams,
        errors: ['agent_not_found', 'conflict'],
        body: v.union([names, v.object({ [kind]: v.optional(names), ...change })], `${kind}: Expected a list of names`),
        returns: v.object({ status: v.literal('ok'), ...listed }),
        // The list and the mode are one statement, which counts as it is sent: an empty list means all, whatever it was
        // before.
        async shown({ params }) {
          const { assigned: now, available } = await facts(kind, await agents.require(params.id))
          return { fields: { assigned: now, available }, measured: ['available'] }
        },
        async handle({ params, body }) {
          const given = Array.isArray(body) ? { [kind]: body } : body
          const wanted = parseNames(given, kind)
          const mode = Array.isArray(body) ? undefined : body.mode
          const agent = await agents.require(params.id)
          if (wanted === undefined && mode === undefined)
            throw new Refusal('invalid_request', `${kind}: Expected a list of names`)
          const list =
            wanted === undefined
              ? mode === 'all'
                ? []
                : agent.manifest[kind]
              : await checkAssigned(assignable, kind, wanted, agent)
          if (mode === 'allowlist' && list.length === 0)
            throw new Refusal('invalid_request', `${kind}: mode allowlist needs names`)
          if (mode === 'all' && list.length > 0)
            throw new Refusal('invalid_request', `mode: all does not go with names in ${kind}`)
          const changed = await agents.edit(params.id, { [kind]: list, [disabled]: mode === 'none' })
          return { status: 'ok' as const, ...(await facts(kind, changed)) }
        },
      }),
    ]
  }

  return [read, replace, ...assign('skills', 'skills'), ...assign('mcp_servers', 'MCP servers')]
}

function parseNames(body: object, kind: string): readonly string[] | undefined {
  const found: unknown = Object.entries(body).find(([key]) => key === kind)?.[1]
  return found === undefined ? undefined : v.parse(names, found)
}
