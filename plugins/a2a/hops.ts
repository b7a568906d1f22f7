import { readHops } from 'svc/internal'
import type { HopLimit } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import { ProtocolProblem } from './server/problem.ts'

/**
 * The extension of the protocol, and the key in `message.metadata`, by which agents of several daemons do not ask each
 * other in a circle: the number of daemons that a message came through.
 */
export const HOP_COUNT = 'urn:svc:a2a:hop-count'
export const HOP_COUNT_TEXT = 'metadata names the number of daemons that the message came through'
export const hopLimit = ({ max_hops: max }: { readonly max_hops: number }): HopLimit => ({ max, key: 'a2a.max_hops' })

/** The hop count of a message. Throws what the protocol has for one that came too far. */
export function readHopCount(metadata: Readonly<Record<string, unknown>> | undefined, limit: HopLimit): number {
  try {
    return readHops(metadata?.[HOP_COUNT], limit)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (error.code !== 'conflict') throw new ProtocolProblem('RequestMalformed', `${HOP_COUNT}: ${error.message}`)
    throw new ProtocolProblem('UnsupportedOperation', error.message)
  }
}
