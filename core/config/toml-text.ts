import { parse, stringify, TomlError } from 'smol-toml'
import type { TomlTable } from 'smol-toml'
import { checkDepth, nestingLimit, NestingError } from '../schema/nesting.ts'
import { isTree } from './shape.ts'
import type { Tree } from './shape.ts'

/** What `parseToml` throws: plugins take it from here, because a copy of the package has a class of its own. */
export { TomlError }

/** Throws `TomlError`, and `NestingError` for what nests too deep in brackets, in headers or in dotted keys. */
export function parseToml(text: string): TomlTable {
  const maxDepth = nestingLimit()
  let table: TomlTable
  try {
    table = parse(text, { maxDepth })
  } catch (error) {
    if (error instanceof TomlError && error.message.includes('excessively nested')) throw new NestingError(maxDepth)
    throw error
  }
  checkDepth(table, maxDepth)
  return table
}
/** A whole TOML text. */
export function renderToml(tree: Tree): string {
  return stringify(tree)
}
/** A value in one line. */
export function toToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toToml).join(', ')}]`
  if (isTree(value)) {
    const entries = Object.entries(value).map(
      ([key, item]) => `${/^[\w-]+$/.test(key) ? key : JSON.stringify(key)} = ${toToml(item)}`,
    )
    return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
  }
  return stringify({ x: value }).trim().slice('x = '.length)
}
