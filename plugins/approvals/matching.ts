import type { EscalationRule, TwoPeopleRule } from './config.ts'
import type { ApprovalInput } from './contract.ts'

/** Whether a rule of the configuration is about this request. */
export function matches(
  { risks, tools, agents }: EscalationRule | TwoPeopleRule,
  { risk, tool, agentId, agentName }: Pick<ApprovalInput, 'risk' | 'tool' | 'agentId' | 'agentName'>,
): boolean {
  if (risks && !risks.includes(risk)) return false
  if (tools && !tools.some((pattern) => matchesTool(pattern, tool))) return false
  return !agents || agents.some((name) => name === agentId || name === agentName)
}

export function matchesTool(pattern: string, tool: string): boolean {
  return pattern.endsWith('*') ? tool.startsWith(pattern.slice(0, -1)) : tool === pattern
}
