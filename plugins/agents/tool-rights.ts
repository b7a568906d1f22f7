import { matchesWildcard } from 'svc/internal'
import type { Manifest, Permission } from './contract.ts'

export interface ToolFacts {
  readonly name: string
  readonly risk: 'read' | 'write' | 'execute'
  /** The capability without which it is of no use. */
  readonly needs?: string | undefined
  /** Where its plugin has it from. */
  readonly source?: string | undefined
}
const MCP_SOURCE = 'mcp:'
const SKILL_SOURCE = 'skill:'

/**
 * By what the manifest grants, and whether it grants any of what the tool works with and the MCP server or skill it comes from;
 * then its allowlist, then its blocklist, then the permission. Names may hold `*`.
 */
export function mayUse(manifest: Manifest, permission: Permission, { name, risk, needs, source }: ToolFacts): boolean {
  if (manifest.tools_disabled || permission === 'observe' || (permission === 'assist' && risk !== 'read')) return false
  if (needs !== undefined && !isHeld(manifest, needs)) return false
  if (source !== undefined && !usesSource(manifest, source)) return false
  const named = (patterns: readonly string[]): boolean => patterns.some((pattern) => matchesWildcard(pattern, name))
  return (
    named(manifest.capabilities.tools) &&
    (manifest.tool_allowlist.length === 0 || named(manifest.tool_allowlist)) &&
    !named(manifest.tool_blocklist)
  )
}

function usesSource(manifest: Manifest, source: string): boolean {
  if (source.startsWith(MCP_SOURCE))
    return isAmong(manifest.mcp_servers, manifest.mcp_disabled, source.slice(MCP_SOURCE.length))
  if (source.startsWith(SKILL_SOURCE))
    return isAmong(manifest.skills, manifest.skills_disabled, source.slice(SKILL_SOURCE.length))
  return true
}
/** An empty list is all of them. */
function isAmong(patterns: readonly string[], disabled: boolean, name: string): boolean {
  return !disabled && (patterns.length === 0 || patterns.some((pattern) => matchesWildcard(pattern, name)))
}

/** Whether the manifest grants any of a capability. One that manifests do not have is never granted. */
function isHeld({ capabilities }: Manifest, name: string): boolean {
  const held = new Map<string, boolean | readonly string[]>(Object.entries(capabilities)).get(name)
  return typeof held === 'object' ? held.length > 0 : held === true
}
