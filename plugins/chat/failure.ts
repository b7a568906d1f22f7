import { Refusal, UpstreamFailure } from 'svc/sdk'

/** What a person is told of a failed turn; `undefined` for a defect. */
export function explain(error: unknown): string | undefined {
  return error instanceof Refusal || error instanceof UpstreamFailure ? error.message : undefined
}
