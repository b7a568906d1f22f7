import type Pg from 'pg'
import { codeOf, isLost, SERVER_AWAY, ServerAway } from './failure.ts'

/** What a client of the server failed with: `ServerAway`, or what the server said of the statement or the password. */
export function serverFailure(error: unknown, { DatabaseError }: Pick<typeof Pg, 'DatabaseError'>): unknown {
  if (error instanceof Error && error.message.startsWith('SASL')) return passwordMissing(error)
  return error instanceof DatabaseError && !isLost(codeOf(error)) ? error : new ServerAway(SERVER_AWAY, error, true)
}

/** The client has no code for it: the one that the server has for a wrong password. */
function passwordMissing(cause: Error): Error {
  return Object.assign(new Error(`the server asks for a password (${cause.message})`, { cause }), { code: '28P01' })
}
