import { stringify } from 'smol-toml'
import { isTree } from './shape.ts'
import type { Tree } from './shape.ts'

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
