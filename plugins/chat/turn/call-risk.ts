import type { ToolDescription } from 'svc/sdk'

/** A tool that reads may have calls that do more, such as a POST request. */
export function riskOfCall(
  tool: Pick<ToolDescription, 'risk' | 'assess'> | undefined,
  args: unknown,
): ToolDescription['risk'] {
  const risk = tool?.risk ?? 'execute'
  if (risk !== 'read') return risk
  const harm = tool?.assess?.(args)?.harm
  return harm === 'high' || harm === 'critical' ? 'execute' : 'read'
}
