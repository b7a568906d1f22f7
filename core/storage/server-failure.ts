import type Pg from 'pg'
import { codeOf, isLost, ServerAway } from './failure.ts'

/** What a client of the server failed with: `ServerAway`, or what the server said of the statement or the password. */
export function serverFailure(error: unknown, { DatabaseError }: Pick<typeof Pg, 'DatabaseError'>): unknown {
  const isWord = error instanceof DatabaseError || (error instanceof Error && error.message.startsWith('SASL'))
  return isWord && !isLost(codeOf(error)) ? error : new ServerAway('The database server does not answer', error, true)
}
