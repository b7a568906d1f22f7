import * as v from 'valibot'

/** What a plugin declares, as the process that reads its code tells it. */
export const Inspection = v.object({
  name: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/), v.maxLength(64)),
  version: v.pipe(v.string(), v.maxLength(200)),
  apiVersion: v.optional(v.string()),
  permissions: v.pipe(v.array(v.pipe(v.string(), v.maxLength(300))), v.maxLength(1000)),
  declaresUses: v.boolean(),
  requires: v.array(v.string()),
  provides: v.array(v.string()),
  /** What it uses that does not cross to a process of its own. */
  unsupported: v.array(v.string()),
})
export type Inspection = v.InferOutput<typeof Inspection>
export const InspectionProblem = v.object({ problem: v.string() })
