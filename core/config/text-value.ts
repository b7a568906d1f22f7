import { unwrap } from './shape.ts'
import type { Schema } from './shape.ts'
import { readJson } from '../schema/nesting.ts'

/**
 * A text from the environment or a command line as the value the schema wants. A text that does not fit stays a text,
 * so that the check that follows can say what was expected.
 */
export function fromText(schema: Schema | undefined, text: string): unknown {
  switch (schema ? unwrap(schema).type : 'unknown') {
    case 'number':
      return /^-?\d[\d_]*(\.\d+)?$/.test(text.trim()) ? Number(text.trim().replaceAll('_', '')) : text
    case 'boolean': {
      const word = text.trim().toLowerCase()
      if (['true', '1', 'yes', 'on'].includes(word)) return true
      return ['false', '0', 'no', 'off'].includes(word) ? false : text
    }
    case 'array':
      return text.trimStart().startsWith('[')
        ? fromJson(text)
        : text
            .split(',')
            .map((item) => item.trim())
            .filter(Boolean)
    case 'picklist':
      return text.trim()
    case 'string':
      return text
    default:
      return fromJson(text)
  }
}
function fromJson(text: string): unknown {
  try {
    return readJson(text) as unknown
  } catch {
    return text /* a plain text needs no quotes */
  }
}
