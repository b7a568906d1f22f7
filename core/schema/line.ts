import * as v from 'valibot'

/**
 * A title, a label, a name people give: text of one line in any script, without blanks around it, of at most so many
 * characters as people count them in JSON Schema (code points).
 */
export function line(maxChars: number) {
  return v.pipe(
    v.string(),
    v.trim(),
    v.minLength(1, 'must not be empty'),
    v.check((text) => text.length <= maxChars || [...text].length <= maxChars, `at most ${maxChars} characters`),
    v.check((text) => !/\p{Cc}/u.test(text), 'must be one line without control characters'),
    v.check((text) => text.isWellFormed(), 'must be well-formed Unicode'),
    // Spelled out for the OpenAPI document: not every reader of it knows \p{Cc}.
    v.metadata({ maxLength: maxChars, pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]+$' }),
  )
}
