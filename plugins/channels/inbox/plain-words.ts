import { Refusal, UpstreamFailure } from 'svc/sdk'

// What people in a chat are told of a failure. Its own words are for the operator, in the log and in the status: they
// name settings, addresses and sums of money.

export const OWNER_CAN_SEE = 'The owner of this bot can see why.'

const ANSWERS: Readonly<Record<string, string>> = {
  rate_limit: 'A limit is reached for now.',
  service_unavailable: 'The agent is not available at the moment.',
  conflict: 'The agent takes no messages at the moment.',
  payload_too_large: 'It is too large.',
}
/** Why a message was not answered, by the code of the failure. */
export function plainReason(code: string | undefined): string {
  return (code !== undefined && Object.hasOwn(ANSWERS, code) && ANSWERS[code]) || 'Something went wrong.'
}

/** Why a command was refused. What is wrong with the command itself is said as it is. */
export function plainRefusal({ code, message }: Refusal): string {
  if (code === 'invalid_request' || code.endsWith('not_found')) return message
  return code === 'forbidden' ? 'You cannot do this here.' : `This cannot be done now. ${OWNER_CAN_SEE}`
}

/** Why a file was not read, as the end of a sentence. */
export function plainFileReason(error: unknown): string {
  const isRefusal = error instanceof Refusal
  if (isRefusal && error.code === 'payload_too_large') return error.message
  if (isRefusal && error.code === 'forbidden') return 'it is at an address that this bot may not open'
  const isGone = isRefusal ? error.code.endsWith('not_found') : isMissing(error)
  return isGone ? 'it is gone' : 'it could not be fetched'
}

function isMissing(error: unknown): boolean {
  return error instanceof UpstreamFailure && error.reason === 'not_found'
}
