import { matchesWildcard } from 'svc/internal'

/**
 * Whether a list of patterns grants a name. `*` stands for any run of characters, also none; `self.` before a pattern
 * means the agent's own names, which is where `own` says this one is.
 */
export function grants(patterns: readonly string[], name: string, own: boolean): boolean {
  return patterns.some((pattern) => matchesWildcard(pattern, name) || (own && matchesWildcard(pattern, `self.${name}`)))
}
