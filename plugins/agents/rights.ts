import { matchesWildcard } from 'svc/internal'
import type { Agent } from './contract.ts'

/**
 * Whether a list of patterns grants a name. `*` matches any run of characters, even none; `self.` before a pattern
 * means the agent's own names, under the prefix `own`.
 */
export function grants(patterns: readonly string[], name: string, own: boolean): boolean {
  return patterns.some((pattern) => matchesWildcard(pattern, name) || (own && matchesWildcard(pattern, `self.${name}`)))
}

/** Whether an agent may write to another one, by name or id; `*` at an end of a pattern matches any characters. */
export function mayMessage({ manifest }: Agent, to: Agent): boolean {
  return manifest.capabilities.agent_message.some((pattern) =>
    [to.name, to.id].some(
      (name) =>
        pattern === '*' ||
        pattern === name ||
        (pattern.endsWith('*') && !pattern.slice(0, -1).includes('*') && name.startsWith(pattern.slice(0, -1))) ||
        (pattern.startsWith('*') && !pattern.slice(1).includes('*') && name.endsWith(pattern.slice(1))),
    ),
  )
}
