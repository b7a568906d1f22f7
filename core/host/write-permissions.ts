import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceConfined } from '../files/replace.ts'
import type { ReadEntries } from './permission-record.ts'

/** Writes the entry of a folder, or removes it; a damaged file is kept beside the new one. */
export async function writeEntries(
  home: string,
  file: string,
  { entries, problem }: ReadEntries,
  key: string,
  permissions: readonly string[] | undefined,
): Promise<void> {
  if (problem !== undefined) await copyFile(join(home, file), join(home, `${file}.damaged`))
  const others = Object.entries(entries).filter(([other]) => other !== key)
  const next = Object.fromEntries(permissions ? [...others, [key, permissions]] : others)
  await replaceConfined(home, file, `${JSON.stringify(next, undefined, 2)}\n`)
}

export function addKey(keys: ReadonlySet<string> | undefined, key: string): ReadonlySet<string> {
  return new Set([...(keys ?? []), key])
}
export function removeKey(keys: ReadonlySet<string> | undefined, key: string): ReadonlySet<string> {
  return new Set([...(keys ?? [])].filter((other) => other !== key))
}
