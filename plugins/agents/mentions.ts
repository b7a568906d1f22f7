import { isTable, readTable } from './manifest.ts'

/**
 * Whether the text itself has a key, by path, instead of leaving it to the default. The text is read once, for all
 * questions.
 */
export function mentions(toml: string): (path: string) => boolean {
  const table = readTable(toml)
  return (path) => {
    let at: unknown = table
    for (const key of path.split('.')) {
      if (!isTable(at) || !Object.hasOwn(at, key)) return false
      at = at[key]
    }
    return true
  }
}
