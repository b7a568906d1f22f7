import { createHash } from 'node:crypto'

const MAX_NAME_CHARS = 64

/** Names of tools for things that people name freely: lower case and unique; a hash ends those that would clash. */
export function namedTools<T extends { readonly name: string }>(
  prefix: string,
  items: readonly T[],
): ReadonlyMap<string, T> {
  const plain = items.map((item) => `${prefix}${item.name.toLowerCase().replaceAll(/[^a-z0-9_]/g, '_')}`)
  const counts = new Map<string, number>()
  for (const name of plain) counts.set(name, (counts.get(name) ?? 0) + 1)
  const tools = new Map<string, T>()
  items.forEach((item, at) => {
    const name = plain[at] ?? ''
    const fits = name.length <= MAX_NAME_CHARS && counts.get(name) === 1
    tools.set(fits ? name : `${name.slice(0, MAX_NAME_CHARS - 9)}_${hash(item.name)}`, item)
  })
  return tools
}
function hash(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 8)
}
