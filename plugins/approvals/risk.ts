import type { RiskLevel } from './contract.ts'

export type Declared = 'read' | 'write' | 'execute'

/** What the API facts say of single tools; the others that start programs are as bad as a shell. */
const known: Readonly<Record<string, RiskLevel>> = {
  shell_exec: 'critical',
  process_start: 'critical',
  docker_exec: 'critical',
  file_write: 'high',
  file_delete: 'high',
  apply_patch: 'high',
  web_fetch: 'medium',
  browser_navigate: 'medium',
  // What an agent makes has no right that it has not itself.
  agent_spawn: 'medium',
}

/** How much harm a call can do. A tool nobody knows is as risky as it says itself. */
export function riskOf(tool: string, declared: Declared | undefined): RiskLevel {
  if (Object.hasOwn(known, tool)) return known[tool] ?? 'critical'
  if (tool.startsWith('mcp_') || declared === 'execute') return 'high'
  return 'low'
}

/**
 * Whether `risky` asks before a call: what is critical, what reaches outside with a high risk, and what the operator
 * lists. High alone is not enough: writing a file of its own workspace is high, and an agent that asks for each is of
 * no use.
 */
export function isRisky(tool: string, declared: Declared | undefined, listed: readonly string[]): boolean {
  const risk = riskOf(tool, declared)
  if (risk === 'critical' || tool.startsWith('mcp_') || (risk === 'high' && declared === 'execute')) return true
  return listed.some((pattern) => (pattern.endsWith('*') ? tool.startsWith(pattern.slice(0, -1)) : tool === pattern))
}

/**
 * What a turn that may have been talked into it must ask for: whatever can do lasting harm, files of its own included.
 */
export function isHarmful(tool: string, declared: Declared | undefined): boolean {
  const risk = riskOf(tool, declared)
  return risk === 'high' || risk === 'critical'
}
