import { Refusal } from 'svc/sdk'

/** For a field of a definition that is not what the step type needs. */
export const refuse = (field: string, expected: string): Refusal =>
  new Refusal('invalid_request', `${field}: expected ${expected}`)
