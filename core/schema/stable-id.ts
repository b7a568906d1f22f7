import { v5 } from 'uuid'

const NAMESPACE = '5d1c7f0a-6c57-4f0e-9a8b-7f0f7b6f4c11'

/** A UUID that is the same for the same parts, such as a job and the number of its attempt. */
export function stableId(...parts: readonly string[]): string {
  return v5(parts.join('\u0000'), NAMESPACE)
}
