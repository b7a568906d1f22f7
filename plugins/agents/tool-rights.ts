import type { Manifest, Permission } from './contract.ts'
import { matches } from './rights.ts'

export interface ToolFacts { readonly name: string; readonly risk: 'read' | 'write' | 'execute' }

/** By what the manifest grants, then its allowlist, then its blocklist, then the permission. Names may hold `*`. */
export function mayUse(manifest: Manifest, permission: Permission, { name, risk }: ToolFacts): boolean {
  if (manifest.tools_disabled || permission === 'observe' || (permission === 'assist' && risk !== 'read')) return false
  const named = (patterns: readonly string[]): boolean => patterns.some((pattern) => matches(pattern, name))
  return named(manifest.capabilities.tools)
    && (manifest.tool_allowlist.length === 0 || named(manifest.tool_allowlist))
    && !named(manifest.tool_blocklist)
}
