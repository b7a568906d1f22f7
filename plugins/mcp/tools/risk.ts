import type { McpTool } from '../contract.ts'
import type { ServerConfig } from '../servers/spec.ts'

export type Risk = 'read' | 'write' | 'execute'
const ORDER: readonly Risk[] = ['read', 'write', 'execute']
const higher = (one: Risk, other: Risk): Risk => (ORDER.indexOf(one) > ORDER.indexOf(other) ? one : other)

/**
 * The risk of a tool: what the operator says of it, else at least what the operator says of its server. Annotations are
 * words of the server: they can raise the risk, and lower it only where the operator trusts them and says nothing else.
 */
export function riskOf(server: Pick<ServerConfig, 'risk' | 'tool_risk' | 'trust_annotations'>, tool: McpTool): Risk {
  const own = server.tool_risk[tool.name]
  if (own !== undefined) return own
  const claimed = claimedRisk(tool)
  if (server.risk !== undefined) return higher(server.risk, claimed ?? server.risk)
  return server.trust_annotations ? (claimed ?? 'execute') : 'execute'
}

function claimedRisk({ annotations = {} }: McpTool): Risk | undefined {
  if (annotations['readOnlyHint'] === true) return 'read'
  if (annotations['destructiveHint'] === true) return 'execute'
  if (annotations['destructiveHint'] === false) return 'write'
  return undefined
}
