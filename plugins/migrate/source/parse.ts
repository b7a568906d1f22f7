import { checkDepth, NestingError, parseToml } from 'svc/internal'
import { readJson } from 'svc/sdk'
import type { SourceFolder } from './source-folder.ts'
import { secretsIn } from './secrets.ts'
import { fieldsOf, numberOf, textOf } from './values.ts'
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
  let value: unknown
  try {
    value = await parseText(format, text)
    checkDepth(value)
  } catch (error) {
    folder.skip(name, `it cannot be read: ${problemOf(error)}`)
    return undefined
  }
  for (const secret of secretsIn(value)) folder.mask.register(secret)
  return value
}
/** What is wrong and where, without what stands there: it may be a secret, and parsers quote it. */
function problemOf(error: unknown): string {
  if (error instanceof NestingError) return error.message
  const { reason, line, lineNumber, mark } = fieldsOf(error)
  const [said = ''] = (textOf(reason) ?? 'it is not valid').split(/["!:]/)
  const number = numberOf(line ?? lineNumber) ?? (numberOf(fieldsOf(mark)['line']) ?? -1) + 1
  return number > 0 ? `${said.trim()} (line ${number})` : said.trim()
}
