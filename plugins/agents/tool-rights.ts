import { matchesWildcard } from 'svc/internal'
import type { Manifest, Permission } from './contract.ts'

export interface ToolFacts {
  readonly name: string
  readonly risk: 'read' | 'write' | 'execute'
  /** The capability without which it is of no use. */
  readonly needs?: 'network' | 'shell' | 'agent_spawn' | 'agent_message' | undefined
}

/**
 * By what the manifest grants, and whether it grants any of what the tool works with; then its allowlist, then its
 * blocklist, then the permission. Names may hold `*`.
 */
export function mayUse(manifest: Manifest, permission: Permission, { name, risk, needs }: ToolFacts): boolean {
  if (manifest.tools_disabled || permission === 'observe' || (permission === 'assist' && risk !== 'read')) return false
  const held = needs === undefined || manifest.capabilities[needs]
  if (held === false || (typeof held === 'object' && held.length === 0)) return false
  const named = (patterns: readonly string[]): boolean => patterns.some((pattern) => matchesWildcard(pattern, name))
  return (
    named(manifest.capabilities.tools) &&
    (manifest.tool_allowlist.length === 0 || named(manifest.tool_allowlist)) &&
    !named(manifest.tool_blocklist)
  )
}
