import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import { ProtocolProblem } from './problem.ts'

const Position = v.tuple([v.pipe(v.string(), v.isoTimestamp()), v.pipe(v.string(), v.uuid())])

/** Where the next page begins. */
export function encodePageToken({ updatedAt, id }: { readonly updatedAt: string; readonly id: string }): string {
  return Buffer.from(JSON.stringify([updatedAt, id])).toString('base64url')
}
export function decodePageToken(token: string): { readonly updatedAt: string; readonly id: string } {
  try {
    const [updatedAt, id] = v.parse(Position, readJson(Buffer.from(token.slice(0, 256), 'base64url').toString('utf8')))
    return { updatedAt, id }
  } catch {
    throw new ProtocolProblem('RequestMalformed', 'pageToken: none that was given out here; begin with the first page')
  }
}
