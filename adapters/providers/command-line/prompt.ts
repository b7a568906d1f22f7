import { textOfUser, transcriptOf } from 'svc/providers'
import type { CompletionRequest } from 'svc/providers'

/**
 * All a program reads: the conversation written down with its speakers, after the instructions where it takes them no
 * other way.
 */
export function promptOf({ system, turns, responseFormat }: CompletionRequest, isApart: boolean): string {
  const [only] = turns
  const asked =
    turns.length === 1 && only?.role === 'user'
      ? textOfUser(only)
      : `${transcriptOf(turns)}\n\nGive the next answer of the assistant, and nothing else.`
  const form =
    responseFormat === undefined
      ? ''
      : responseFormat.type === 'json'
        ? '\n\nAnswer with JSON only.'
        : `\n\nAnswer with JSON only, as this schema says: ${JSON.stringify(responseFormat.schema)}`
  return `${isApart || system === '' ? '' : `${system}\n\n`}${asked}${form}`
}
