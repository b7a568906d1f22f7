import { v5 } from 'uuid'

const NAMESPACE = '5d1c7f0a-6c57-4f0e-9a8b-7f0f7b6f4c11'
/** For parts with the separator, or with half of a character, which has no bytes. */
const ESCAPED_NAMESPACE = '0c9b3d53-4f0b-4a57-9d0e-2d1f6a5c7e38'
const SEPARATOR = '\u0000'

/** A UUID that is the same for the same parts, such as a job and the number of its attempt, and for no others. */
export function stableId(...parts: readonly string[]): string {
  const isPlain = parts.every((part) => part.isWellFormed() && !part.includes(SEPARATOR))
  return isPlain ? v5(parts.join(SEPARATOR), NAMESPACE) : v5(JSON.stringify(parts), ESCAPED_NAMESPACE)
}
