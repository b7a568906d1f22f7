import * as v from 'valibot'

/** The latest read-only requests, in the data folder: what a rehearsal of an upgrade asks again. */
export const RECORDED_REQUESTS = 'recorded-requests.json'

export const RecordedRequests = v.array(
  v.object({
    plugin: v.string(),
    /** With its query. */
    path: v.pipe(v.string(), v.startsWith('/')),
    status: v.number(),
    /** Digest of the names of the fields of the answer. */
    shape: v.string(),
    /** ISO 8601 UTC. */
    at: v.string(),
  }),
)
export type RecordedRequest = v.InferOutput<typeof RecordedRequests>[number]
