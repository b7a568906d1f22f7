import { matchesWildcard } from 'svc/internal'

/**
 * Whether a list of patterns grants a name. `*` matches any run of characters, even none; `self.` before a pattern
 * means the agent's own names, under the prefix `own`.
 */
export function grants(patterns: readonly string[], name: string, own: boolean): boolean {
  return patterns.some((pattern) => matchesWildcard(pattern, name) || (own && matchesWildcard(pattern, `self.${name}`)))
}
