import { ownRule, undecided } from './file-only.ts'
import type { KeyRule } from './file-only.ts'
import { findChild, isTable, isTree } from './shape.ts'
import type { Schema } from './shape.ts'

/**
 * The first key that this value would set and only the file sets. Tables and lists of tables are looked into, whose
 * keys differ.
 */
export function findFileOnly(
  schema: Schema,
  path: readonly string[],
  value: unknown,
): { readonly path: readonly string[]; readonly reason: string } | undefined {
  let part: Schema | undefined = schema
  let rule = ownRule(schema) ?? undecided
  for (const key of path) {
    part = part && findChild(part, key)
    rule = (part && ownRule(part)) ?? rule
  }
  return inValue(part, path, value, rule)
}
function inValue(
  schema: Schema | undefined,
  path: readonly string[],
  value: unknown,
  rule: KeyRule,
): { readonly path: readonly string[]; readonly reason: string } | undefined {
  const inside =
    schema && isTable(schema) && isTree(value)
      ? Object.entries(value)
      : Array.isArray(value) && value.some(isTree)
        ? [...value.entries()]
        : []
  if (inside.length === 0) return rule.fileOnly ? { path, reason: rule.reason } : undefined
  for (const [key, item] of inside) {
    const child = schema && findChild(schema, String(key))
    const found = inValue(child, [...path, String(key)], item, (child && ownRule(child)) ?? rule)
    if (found) return found
  }
  return undefined
}
