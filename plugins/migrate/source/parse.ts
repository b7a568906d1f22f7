import { checkDepth, messageOf, parseToml } from 'svc/internal'
import { readJson } from 'svc/sdk'
import type { SourceFolder } from './source-folder.ts'
import { fieldsOf } from './values.ts'
import type { Fields } from './values.ts'

/** Packages are evaluated with the first file of their kind. */
async function parseText(format: string, text: string): Promise<unknown> {
  if (format === 'toml') return parseToml(text)
  if (format === 'json5') return (await import('json5')).default.parse(text)
  if (format !== 'yaml' && format !== 'yml') return readJson(text)
  const { CORE_SCHEMA, load } = await import('js-yaml')
  // Aliases make small files large: each refers to what holds others.
  return load(text, { schema: CORE_SCHEMA, maxAliases: 0 })
}

/**
 * A file as its ending says, or as `format`: `undefined` when there is none or it is left out, with the reason among the
 * problems of the folder.
 */
export async function readFields(
  folder: SourceFolder,
  name: string,
  format: string = name.slice(name.lastIndexOf('.') + 1),
): Promise<Fields | undefined> {
  const value = await readValue(folder, name, format)
  return value === undefined ? undefined : fieldsOf(value)
}
export async function readValue(
  folder: SourceFolder,
  name: string,
  format: string = name.slice(name.lastIndexOf('.') + 1),
): Promise<unknown> {
  const text = await folder.text(name)
  if (text === undefined) return undefined
  try {
    const value = await parseText(format, text)
    checkDepth(value)
    return value
  } catch (error) {
    folder.skip(name, `it cannot be read: ${messageOf(error).split('\n')[0] ?? ''}`)
    return undefined
  }
}
