import { NestingError, parseToml, TomlError } from 'svc/internal'
import { readJson, Refusal } from 'svc/sdk'

export type Format = 'json' | 'toml'

/** JSON begins with a bracket, which no TOML with a name and steps does. */
export const formatOf = (text: string): Format => (/^\s*(?:\{|\[\s*[{\]])/.test(text) ? 'json' : 'toml')

/** Throws `invalid_request` with line and column. */
export function parseText(text: string, format: Format = formatOf(text)): unknown {
  // Half of a surrogate pair would come back from the database as another character.
  if (!text.isWellFormed()) throw new Refusal('invalid_request', 'text: is not well-formed Unicode')
  try {
    return format === 'json' ? readJson(text) : parseToml(text)
  } catch (error) {
    throw new Refusal('invalid_request', `text: ${explain(error, format)}`, { cause: error })
  }
}

function explain(error: unknown, format: Format): string {
  if (error instanceof NestingError) return error.message
  if (error instanceof TomlError) {
    const reason = (error.message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '')
    return `malformed TOML at line ${error.line}, column ${error.column}: ${reason}`
  }
  if (!(error instanceof SyntaxError)) throw error
  return `malformed ${format === 'json' ? 'JSON' : 'TOML'}: ${error.message}`
}
