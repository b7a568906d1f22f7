import * as v from 'valibot'
import { orAbsent } from 'svc/internal'

const KEY = /^[A-Za-z0-9_-]{1,128}(?:\.[A-Za-z0-9_-]{1,128}){0,3}$/
const Edits = v.pipe(
  v.record(
    v.pipe(v.string(), v.regex(KEY, 'Expected the path of a key, such as model.temperature')),
    v.nullable(v.union([v.string(), v.number(), v.boolean(), v.array(v.string())])),
  ),
  v.check((edits) => Object.keys(edits).length <= 50, 'at most 50'),
)
export type Edits = v.InferOutput<typeof Edits>

export const Draft = v.object({
  manifest_toml: orAbsent(v.string()),
  signed_manifest: orAbsent(v.pipe(v.unknown(), v.description('A signed manifest, in place of `manifest_toml`.'))),
  agent_id: orAbsent(v.pipe(v.string(), v.uuid(), v.description('The agent whose manifest it is to replace.'))),
  edits: orAbsent(
    v.pipe(
      Edits,
      v.description(
        'Values to write into the text first, by path; null removes the key. Comments and all other keys stay.',
      ),
    ),
  ),
})
export type Draft = v.InferOutput<typeof Draft>

const place = v.nullable(v.pipe(v.number(), v.integer()))
const Fault = v.object({ message: v.string(), line: place, column: place, key: v.nullable(v.string()) })
export type Fault = v.InferOutput<typeof Fault>

export const CheckedDraft = v.object({
  valid: v.boolean(),
  /** With the edits in it. */
  manifest_toml: v.string(),
  /** What is written in it; null where it is not TOML. */
  manifest: v.nullable(v.record(v.string(), v.unknown())),
  faults: v.array(Fault),
  warnings: v.array(v.string()),
})
export type CheckedDraft = v.InferOutput<typeof CheckedDraft>
