import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Writes the characters that are not ASCII as escapes. The engine keeps a source with a single character beyond Latin-1
 * in two bytes for each: a few dashes and dots would double what all the code takes in memory.
 */
export async function escapeCharacters(folder: string): Promise<void> {
  const files = await readdir(folder, { recursive: true })
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    const path = join(folder, file)
    const text = await readFile(path, 'utf8')
    const escaped = toAscii(text)
    if (escaped !== text) await writeFile(path, escaped)
  }
}

/** Means the same in strings, templates and regular expressions. Throws for `String.raw`, where it would not. */
export function toAscii(code: string): string {
  if (!/[^\0-\x7f]/.test(code)) return code
  for (const [template] of code.matchAll(/String\.raw`(?:[^`\\]|\\[^])*`/g))
    if (/[^\0-\x7f]/.test(template)) throw new Error(`${template.slice(0, 80)}: write String.raw with ASCII only`)
  // Each half of a surrogate pair by itself. A backslash before such a character means nothing and goes.
  return code.replaceAll(/\\[\0-\x7f]|\\?([^\0-\x7f])/g, (found: string, unit: string | undefined) =>
    unit === undefined ? found : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
