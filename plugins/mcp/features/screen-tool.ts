import type { Screening } from '../../screening/contract.ts'
import type { McpTool } from '../contract.ts'
import { definitionOf } from './pins.ts'

const MAX_NAME_CHARS = 256

/** What speaks against offering a tool, or should be known of it: its texts come from outside. */
export async function screenTool(
  screening: Screening | undefined,
  tool: McpTool,
): Promise<{ readonly usable: boolean; readonly reason?: string }> {
  if (tool.name.length > MAX_NAME_CHARS)
    return { usable: false, reason: `its name is longer than ${MAX_NAME_CHARS} characters` }
  const found = await screening?.screen([tool.name, ...textsOf(definitionOf(tool))].join('\n'))
  const [worst] = found?.findings.filter(({ level }) => level === found.level) ?? []
  if (!found || !worst || (found.level !== 'critical' && found.level !== 'warning')) return { usable: true }
  const reason = `its description addresses the model (${worst.rule}): ${worst.excerpt}`
  return { usable: found.level !== 'critical', reason }
}

/** All texts of a definition: names of fields, descriptions, titles, values. */
function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(textsOf)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [name, ...textsOf(inner)])
}
