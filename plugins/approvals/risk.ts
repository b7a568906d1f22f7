import type { RiskLevel } from './contract.ts'
import { matchesTool } from './matching.ts'

export type Declared = 'read' | 'write' | 'execute'

/** Risks of single tools from the API facts; the others that start programs are as risky as a shell. */
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

/** A tool of an MCP server reads only where the operator says so; what it is given leaves the daemon all the same. */
const isForeign = (tool: string): boolean => tool.startsWith('mcp_')

/** How much harm a call can do. An unknown tool has the risk that it declares. */
export function riskOf(tool: string, declared: Declared | undefined): RiskLevel {
  if (Object.hasOwn(known, tool)) return known[tool] ?? 'critical'
  if (isForeign(tool)) return declared === 'read' ? 'medium' : 'high'
  if (declared === 'execute') return 'high'
  return 'low'
}

/**
 * Whether `risky` requires an approval: for critical calls, for calls with a high risk that reach outside, and for
 * tools the operator lists. A high risk alone is not enough: writing a file in its own workspace is high, and an agent
 * that needs an approval for each is useless.
 */
export function isRisky(tool: string, declared: Declared | undefined, listed: readonly string[]): boolean {
  const risk = riskOf(tool, declared)
  if (risk === 'critical' || (risk === 'high' && (isForeign(tool) || declared === 'execute'))) return true
  return listed.some((pattern) => matchesTool(pattern, tool))
}

/**
 * Calls that need an approval in a turn that may follow injected instructions: all that can do lasting harm, even to
 * its own files.
 */
export function isHarmful(tool: string, declared: Declared | undefined): boolean {
  return isForeign(tool) || isAtLeastHigh(riskOf(tool, declared))
}
export function isAtLeastHigh(risk: RiskLevel | undefined): boolean {
  return risk === 'high' || risk === 'critical'
}
