import * as v from 'valibot'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { ToolDescription } from 'svc/sdk'
import { Names } from './assignable.ts'
import { checkAssigned } from './check-assigned.ts'
import { selection } from './detail.ts'
import type { AssignmentKind, GrantDeps, Mode, ToolsChange, ToolsView } from './grant-routes.ts'
import type { LoadedAgent } from './registry.ts'
import { mayUse } from './tool-rights.ts'

export function toToolsView(
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
export function toToolEdits({
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

export async function toAssignment({ assignable }: GrantDeps, kind: AssignmentKind, { manifest }: LoadedAgent) {
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

export async function replaceAssigned(
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

export function parseNames(body: object, kind: string): readonly string[] | undefined {
  const found: unknown = Object.entries(body).find(([key]) => key === kind)?.[1]
  return found === undefined ? undefined : v.parse(Names, found)
}
