import type { AnyPlugin } from '../define.ts'

const PARTS = ['optional', 'provides', 'sections', 'offline', 'databaseSidecars'] as const

/** What of a definition does not cross to a process of its own; none when the plugin can be isolated. */
export function unsupportedParts(definition: AnyPlugin): readonly string[] {
  const parts = PARTS.filter((part) => definition[part] !== undefined && Object.keys(definition[part]).length > 0)
  const services = Object.values(definition.requires ?? {}).filter(({ remote }) => remote === undefined)
  return [...parts, ...services.map(({ id }) => `service "${id}"`)]
}
