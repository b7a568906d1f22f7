import type { AnyPlugin } from '../define.ts'

const PARTS = ['requires', 'optional', 'provides', 'sections', 'offline', 'databaseSidecars', 'outbound'] as const

/** The members of a definition that do not cross to a process of its own; none when the plugin can be isolated. */
export function unsupportedParts(definition: AnyPlugin): readonly string[] {
  return PARTS.filter((part) => definition[part] !== undefined && Object.keys(definition[part]).length > 0)
}
