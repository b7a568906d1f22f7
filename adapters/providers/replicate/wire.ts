import * as v from 'valibot'

/** Only the fields that are read. */
const Text = v.nullish(v.string())
const Count = v.nullish(v.number())
export const Metrics = v.object({ input_token_count: Count, output_token_count: Count })
export const Prediction = v.object({
  id: v.string(),
  status: v.string(),
  output: v.nullish(v.union([v.string(), v.array(v.string())])),
  error: v.nullish(v.union([v.string(), v.object({ detail: Text })])),
  metrics: v.nullish(v.unknown()),
  urls: v.object({ get: v.string(), cancel: Text, stream: Text }),
})
export type Prediction = v.InferOutput<typeof Prediction>
export const Failure = v.object({ title: Text, detail: v.nullish(v.unknown()) })
/** The data of an `error` event, and of `done` after a failure. */
export const Problem = v.object({ detail: Text, reason: Text })
export const Collection = v.object({ models: v.array(v.object({ owner: v.string(), name: v.string() })) })
